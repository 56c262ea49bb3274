"""Figures of the lab about itself."""
