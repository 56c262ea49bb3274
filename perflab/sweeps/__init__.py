"""Sweeps: many runs from one file, planned, carried out, and gone on with after any end.

``document`` reads YAML with its lines, ``grammar`` and ``axes`` what a file may say, ``cells`` what
it asks for, ``estimate`` what that takes. ``journal`` and ``folder`` keep how far it came,
``attempt`` and ``execution`` carry it out, ``index`` and ``page`` tell what became of it.
"""
