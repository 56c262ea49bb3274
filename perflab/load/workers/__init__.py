"""The processes that send a load, and how they keep its instants."""
