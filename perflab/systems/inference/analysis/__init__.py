"""What the inference study claims, asked of runs."""
