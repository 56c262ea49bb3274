"""The model registry: FastAPI in front of an S3 object store (registry study)."""
