"""A model registry: large files out of an object store, found by their metadata."""
