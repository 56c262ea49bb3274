"""Downloads: one handler per way to wait for the store."""
