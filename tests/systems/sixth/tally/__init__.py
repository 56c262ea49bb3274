"""A foreign system: a service that takes in bodies of bytes and counts them."""
