"""Sweeps: many runs from one file, which can be resumed after any end.

``grammar`` reads the file and ``cells`` plans its cells. ``attempt`` and ``execution`` carry them
out; ``journal`` and ``folder`` keep the progress; ``index`` shows the results.
"""
