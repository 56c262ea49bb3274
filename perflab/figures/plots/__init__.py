"""One module per plot: its table, how that is drawn, and the view that is made of both."""
