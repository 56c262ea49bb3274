"""What the first line of a duel and its gate may say, and with how many blocks."""
