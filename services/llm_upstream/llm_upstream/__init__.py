"""A stand-in for a language model: the same answer to the same request, at a set pace."""
