"""What speaks to a service: one request after another, over one protocol each."""
