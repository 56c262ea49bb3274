"""A system of somebody else's: a service that takes in bodies of bytes and tells what it took."""
