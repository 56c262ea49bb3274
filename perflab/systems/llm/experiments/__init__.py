"""The experiments on the LLM proxy, one module each."""
