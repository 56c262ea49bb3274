"""The clients that speak to a service, and what they make of its responses."""
