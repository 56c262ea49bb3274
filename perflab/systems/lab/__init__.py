"""The lab itself: its resolution, and the cost of its clients."""
