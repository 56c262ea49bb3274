"""Sweeps over several hosts, each with a worker of Dask distributed.

``hosts`` checks that the hosts are alike. ``dispatch`` hands cells out as an ``order`` each, a
``worker`` carries them out on its host, and ``store`` keeps their results. ``execution`` ties these
together. The extra ``perflab[cluster]`` installs what they need.
"""
