"""What the generator finds out about itself and its load."""
