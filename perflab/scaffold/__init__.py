"""A new experiment of one's own: what it is asked to be, what is wrong with that, and its files."""
