"""The lab itself: what it can resolve, and what its own clients cost."""
