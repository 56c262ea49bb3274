"""Treatments compared: decisions, verdicts, sentences, and what disturbs them."""
