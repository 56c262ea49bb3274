"""The object store and the database of metadata, each through a blocking and an async client."""
