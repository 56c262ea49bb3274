"""Sweeps: many runs from one file, planned, carried out, and gone on with after any end.

``grammar`` says what a file may say, ``cells`` what it asks for. ``journal`` and ``folder`` keep
how far it came, ``attempt`` and ``execution`` carry it out, ``index`` tells what became of it.
"""
