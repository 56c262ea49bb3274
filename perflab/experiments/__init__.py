"""What an experiment is: a question, its parameters, treatments and published results.

The experiments themselves belong to systems: see :mod:`perflab.systems`.
"""

from perflab.experiments.experiment import Experiment, ReadyStack, RunParameters

__all__ = ["Experiment", "ReadyStack", "RunParameters"]
