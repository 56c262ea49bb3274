"""What a load leaves: a row for each request, chunk and message."""
