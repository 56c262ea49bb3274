"""CPU and memory of each service, and the waits of PostgreSQL, on one clock."""
