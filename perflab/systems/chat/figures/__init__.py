"""Figures of crowds on a chat service."""
