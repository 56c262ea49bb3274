"""What the services under test share."""
