"""Statistics of recordings: pure functions whose unit is the trial, never the request."""
