"""Sweeps over several hosts, each with a worker of Dask distributed.

``hosts`` compares what must be equal on all of them, ``worker`` is a host's worker, ``order`` what
it is told to do, ``store`` where its results go, ``dispatch`` hands cells out and takes them up
again. The packages are those of the extra ``perflab[cluster]``.
"""
