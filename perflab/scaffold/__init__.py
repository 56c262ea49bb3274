"""What ``perflab new`` lays out, from its template."""
