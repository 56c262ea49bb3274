"""The table of a study's page where several runs answer one claim."""

from __future__ import annotations

import runpy

import pytest

from perflab.paths import project_root

SCRIPTS = project_root() / "scripts"
FIRST = ("yes: +20% [15, 25]", (1.15, 1.25))


@pytest.mark.parametrize(
    ("second", "ends", "told"),
    [
        ("yes: +24% [18, 30]", (1.18, 1.30), ""),
        # The numbers decide, and not how they are written.
        ("yes: 1.24x [1.18, 1.30]", (1.18, 1.30), ""),
        # An answer whose interval lies elsewhere is another size, and stands beside the first.
        ("yes: +1,024% [900, 1,200]", (10.0, 13.0), "; +1,024% [900, 1,200] in b2"),
        ("yes: +2% [1, 3]", (1.01, 1.03), "; +2% [1, 3] in b2"),
        # What does not decide says nothing of the size, and comes after what does.
        ("not decided: +2% [-1, 3]", (0.99, 1.03), "; not decided in b2"),
        ("no: -3% [-5, -2]", (0.95, 0.98), "; no: -3% [-5, -2] in b2"),
    ],
)
def test_a_second_run_is_told_where_it_says_something_else(
    second: str, ends: tuple[float, float], told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    here, _, runs = tell([("a1", *FIRST), ("b2", second, ends)], monkeypatch)
    assert (here, runs) == (f"{FIRST[0]}{told}", "a1, b2")


def test_of_answers_about_a_limit_only_the_first_has_a_number(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    first, second = (
        "yes: 2% [1, 3] (limit: less than 5%)",
        "yes: 4% [3.5, 4.5] (limit: less than 5%)",
    )
    here, *_ = tell([("a1", first, (0.01, 0.03)), ("b2", second, (0.035, 0.045))], monkeypatch)
    assert here == first


def tell(
    answers: list[tuple[str, str, tuple[float, float]]], monkeypatch: pytest.MonkeyPatch
) -> tuple[str, str, str]:
    """Return what the page says of runs: what is found, n, and their names."""
    monkeypatch.syspath_prepend(SCRIPTS)
    of_runs = runpy.run_path(str(SCRIPTS / "studies.py"))["_of_runs"]
    told: tuple[str, str, str] = of_runs(
        [(name, ("q", "s", text, "8", ends)) for name, text, ends in answers]
    )
    return told
