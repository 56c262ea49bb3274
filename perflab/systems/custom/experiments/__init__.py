"""The experiments of this system, one module each."""
