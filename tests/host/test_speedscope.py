"""py-spy's files in speedscope's format: their call chains, and several files as one."""

from __future__ import annotations

import json

import pytest

from perflab.errors import ProfilerFailed
from perflab.instruments.py_spy import SCHEMA, call_chains, joined


def profile(frames: list[tuple[str, str]], *threads: list[list[int]]) -> str:
    return json.dumps(
        {
            "$schema": SCHEMA,
            "shared": {"frames": [{"name": name, "file": file} for name, file in frames]},
            "profiles": [
                {"type": "sampled", "name": f"thread {number}", "samples": samples}
                for number, samples in enumerate(threads)
            ],
        }
    )


FRAMES = [
    ("main", "/srv/chat/server.py"),
    ("run", "/usr/lib/python3.11/asyncio/runners.py"),
    ("<lambda>;1", "/opt/venv/lib/python3.11/site-packages/websockets/legacy/protocol.py"),
    ("spin", "<string>"),
]


def test_equal_chains_of_all_threads_are_added_up_outermost_first() -> None:
    table = call_chains(profile(FRAMES, [[0, 1], [0, 1, 2], [0, 1]], [[0, 1], [], [3]]))
    assert dict(zip(table["chain"], table["samples"], strict=True)) == {
        "main (chat/server.py);run (asyncio/runners.py)": 3,
        "main (chat/server.py);run (asyncio/runners.py);"
        "<lambda>:1 (websockets/legacy/protocol.py)": 1,
        "spin (<string>)": 1,
    }


@pytest.mark.parametrize("text", ["", "[]", '{"shared": {}}', profile(FRAMES, [[9]])])
def test_a_text_that_is_no_profile_is_refused(text: str) -> None:
    with pytest.raises(ProfilerFailed, match="no speedscope profile"):
        call_chains(text)


def test_joined_profiles_hold_all_chains_and_name_their_origin() -> None:
    one, other = profile(FRAMES[:2], [[0, 1]]), profile(FRAMES[1:], [[0, 1], [2]])
    both = joined([("a, block 0", one), ("b, block 0", other)], "run")
    assert [thread["name"] for thread in json.loads(both)["profiles"]] == [
        "a, block 0: thread 0", "b, block 0: thread 0",
    ]  # fmt: skip
    chains = [*call_chains(one)["chain"], *call_chains(other)["chain"]]
    assert set(call_chains(both)["chain"]) == set(chains)
    assert call_chains(profile([])).empty
