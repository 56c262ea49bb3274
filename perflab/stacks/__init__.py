"""Services as data, started by Docker or as plain processes."""
