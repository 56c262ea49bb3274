"""One module per plot: ``<name>(run) -> Figure`` and ``table(run) -> DataFrame``."""
