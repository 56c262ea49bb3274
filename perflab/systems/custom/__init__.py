"""Two or more variants of a service of one's own: which of them is slower, and by how much."""
