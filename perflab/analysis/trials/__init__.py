"""What trials hold: requests and their parts, windows, profiles, validity."""
