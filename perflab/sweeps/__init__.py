"""Sweeps: many runs from one file, which can be resumed after any end.

``cells`` reads the file and plans its cells. ``attempt`` and ``execution`` carry them out;
``folder`` holds the journal of their progress, and an index page of the results.
"""
