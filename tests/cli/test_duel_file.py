"""A key of ``duel.toml`` of the wrong kind is told in the words of the file."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from perflab.cli import app
from perflab.errors import ParameterError

WHOLE = """# a comment
blocks = 2
fail_on = ["p99>1.05",
  "cpu>1.1"]
[variants]
"v1.9" = "command:a {port}"
'v1.10' = "command:b {port}"
[load]
body = '''
users = 9
'''
users = 2
load_line = 13
"""


def problems(text: str, folder: Path, *words: str) -> list[str]:
    """Return the problems that the command tells of a file."""
    file = folder / "duel.toml"
    file.write_text(text)
    with pytest.raises(ParameterError) as caught:
        CliRunner().invoke(app, ["duel", str(file), *words], catch_exceptions=False)
    return list(caught.value.problems)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('"v1.9"', "v1.9", "variants.v1 must be text: put both"),
        ('"command:a {port}"', "7", "variants.v1.9 must be text: put"),
        ("[variants]", "[varaints]", "unknown parameter 'varaints' (did you mean 'variants'?)"),
        ("[load]", "[load]\nblocks = 3", "blocks stands both at the top and in [load]"),
        ("[load]", "", "variants.users must be text: put"),
        (WHOLE, "load = 2", "[variants] and [load] are tables"),
        ("blocks = 2", "seed = 2026-11-26", "seed = datetime.date(2026, 11, 26): must be a whole"),
        ("users = 2", "think.time_s = 2", "unknown parameter 'think' (did you mean 'think_time_s"),
        ("users = 2", "users = 2.5", "users = 2.5: must be a whole number"),
        ("users = 2", 'timeout_s = "long"', "timeout_s = 'long': must be a number"),
        ("users = 2", "path = 7", "path = 7: must be text"),
        ('"cpu>1.1"', "7", "fail_on = 7: must be text"),
        ("'v1.10'", "#", "variants = ['v1.9=command:a {port}']: must have at least 2"),
        ("users = 2", "", "unknown parameter 'load_line'"),
    ],
)  # fmt: skip
def test_a_key_of_the_wrong_kind_is_told(old: str, new: str, words: str, tmp_path: Path) -> None:
    text = WHOLE.replace(old, new, 1)
    assert any(problem.startswith(words) for problem in problems(text, tmp_path))
