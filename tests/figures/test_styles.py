"""Colours differ in greyscale and for people who do not see red or green, and are legible."""

from __future__ import annotations

from itertools import combinations, pairwise

import numpy as np
import pytest
from matplotlib.colors import to_rgb

from perflab.figures.theme import INK, MARKERS, MUTED, PALETTE, luminance

# G. M. Machado, M. M. Oliveira, L. A. F. Fernandes, IEEE TVCG 15(6), 2009, severity 1.0.
SEEN_BY = {
    "protanopia": [
        (0.152286, 1.052583, -0.204868),
        (0.114503, 0.786281, 0.099216),
        (-0.003882, -0.048116, 1.051998),
    ],
    "deuteranopia": [
        (0.367322, 0.860646, -0.227968),
        (0.280085, 0.672501, 0.047413),
        (-0.011820, 0.042940, 0.968881),
    ],
}


def contrast_with_white(color: str) -> float:
    """Return the contrast of a colour with white, from 1 to 21 (WCAG 2.2)."""
    parts = np.array(to_rgb(color))
    linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
    return 1.05 / (float(linear @ [0.2126, 0.7152, 0.0722]) + 0.05)


def test_every_colour_can_be_seen_on_white() -> None:
    # Lines and areas (WCAG 2.2, 1.4.11), and text of any size (1.4.3).
    assert all(contrast_with_white(color) >= 3.0 for color in PALETTE)
    assert all(contrast_with_white(ink) >= 4.5 for ink in (INK, MUTED))


def test_neighbours_differ_in_greyscale_and_the_first_four_all_do() -> None:
    grey = [luminance(color) for color in PALETTE]
    assert all(abs(a - b) >= 0.1 for a, b in pairwise(grey))
    assert all(abs(a - b) >= 0.1 for a, b in combinations(grey[:4], 2))
    assert len(set(MARKERS)) == len(PALETTE)


@pytest.mark.parametrize("eye", SEEN_BY)
def test_neighbours_differ_for_those_who_do_not_see_red_or_green(eye) -> None:
    linear = np.array([to_rgb(color) for color in PALETTE]) ** 2.2
    simulated = np.clip(linear @ np.array(SEEN_BY[eye]).T, 0, 1) ** (1 / 2.2)
    assert all(np.linalg.norm(a - b) >= 0.15 for a, b in pairwise(simulated))
    assert all(np.linalg.norm(a - b) >= 0.15 for a, b in combinations(simulated[:4], 2))
