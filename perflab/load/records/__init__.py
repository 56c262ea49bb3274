"""The records of a load: a row for each request, chunk and message."""
