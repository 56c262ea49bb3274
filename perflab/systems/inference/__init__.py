"""The ML inference service: FastAPI in front of PostgreSQL (inference study)."""
