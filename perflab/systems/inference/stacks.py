"""What ``perflab stack up`` starts of the inference system."""

from __future__ import annotations

from perflab.experiments import ReadyStack
from perflab.systems.inference.service import InferenceParameters, stack

USUAL = InferenceParameters()

STACKS = (ReadyStack("inference", lambda: stack(USUAL, workers=USUAL.workers)),)
