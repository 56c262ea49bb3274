"""The table of a study's page where several runs answer one claim."""

from __future__ import annotations

import runpy

import pytest

from perflab.paths import project_root

SCRIPTS = project_root() / "scripts"
FIRST = "yes: +20% [15, 25]"


@pytest.mark.parametrize(
    ("second", "told", "names"),
    [
        ("yes: +24% [18, 30]", FIRST, "a1, b2"),
        # An answer whose interval lies elsewhere is another size, and stands beside the first.
        ("yes: +1,024% [900, 1,200]", f"{FIRST}; yes: +1,024% [900, 1,200] in b2", "a1, b2"),
        ("yes: +2% [1, 3]", f"{FIRST}; yes: +2% [1, 3] in b2", "a1, b2"),
        # What does not decide says nothing of the size, and comes after what does.
        ("not decided: +2% [-1, 3]", f"{FIRST}; not decided in b2", "a1, b2"),
        ("no: -3% [-5, -2]", f"{FIRST}; no: -3% [-5, -2]", "a1, b2"),
    ],
)
def test_a_second_run_is_told_where_it_says_something_else(
    second: str, told: str, names: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(SCRIPTS)
    of_runs = runpy.run_path(str(SCRIPTS / "studies.py"))["_of_runs"]
    claims = [(name, ("q", "s", text, "8")) for name, text in (("a1", FIRST), ("b2", second))]
    here, _, runs = of_runs(claims)
    assert (here, runs) == (told, names)
