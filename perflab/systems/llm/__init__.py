"""A streaming proxy before a language model (LLM proxy study)."""
