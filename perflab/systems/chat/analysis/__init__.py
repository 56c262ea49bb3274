"""Analyses of crowds on a chat service."""
