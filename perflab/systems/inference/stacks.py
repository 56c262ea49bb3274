"""What ``perflab stack up`` starts of the inference system."""

from __future__ import annotations

from perflab.systems.inference.service import InferenceParameters, stack
from perflab.trials.experiment import ReadyStack

USUAL = InferenceParameters()

STACKS = (ReadyStack("inference", lambda: stack(USUAL, workers=USUAL.workers)),)
