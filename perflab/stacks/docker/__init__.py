"""Services in containers of Docker."""
