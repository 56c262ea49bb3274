"""The model registry: FastAPI in front of an S3 object store behind a slow link (registry study)."""
