"""Sweeps over several hosts, each with a worker of Dask distributed.

``hosts`` checks that the hosts are alike, and keeps the folder of their results. ``dispatch`` hands
cells out; a ``worker`` carries them out on its host. The extra ``perflab[cluster]`` installs what
they need.
"""
