"""What of this machine bears on measurements: a finding for each thing looked at."""
