"""Several hosts, each with a worker of Dask distributed: sweeps over them, and loads by them.

``hosts`` compares what must be equal on all of them, ``worker`` is a host's worker, ``order`` what
it is told to do, ``store`` where its results go, ``dispatch`` hands cells out and takes them up
again. ``load_hosts`` sends one load from all hosts: ``load_part`` is a host's part of it,
``part_calls`` what its worker is asked, ``parts`` asks all of them, ``parts_fetched`` brings here
what they sent, ``clocks`` compares their clocks, ``calls`` asks a worker anything. The packages are
those of the extra ``perflab[cluster]``.
"""
