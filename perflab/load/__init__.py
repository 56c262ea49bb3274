"""The load generator: what to send, workers that send it, and its judgement of itself."""
