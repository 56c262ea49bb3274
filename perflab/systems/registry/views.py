"""What is drawn of the runs of the registry."""

from __future__ import annotations

from perflab.figures import EFFECT, flame_views

VIEWS = (EFFECT, flame_views)
