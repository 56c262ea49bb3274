"""Answers, sections, pages and documents, made from recordings."""
