"""The machine itself: its lock, its cores, its speed and its facts."""
