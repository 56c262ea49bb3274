"""What requests spend their time on: waits, cores, functions, and what makes sides differ."""
