"""What is drawn of streams, one view a module."""
