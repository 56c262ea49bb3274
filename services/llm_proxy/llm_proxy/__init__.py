"""A streaming proxy before a language model: three ways to pass its chunks on."""
