"""Sweeps: many runs from one file, which can be resumed after any end.

``grammar`` reads the file and ``cells`` plans its cells. ``attempt`` and ``execution`` carry them
out; ``journal`` keeps the progress; ``folder`` holds it, and an index page of the results.
"""
