"""Folding what perf script prints: known texts, and any call chains there can be."""

from __future__ import annotations

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from perflab.sampling.perf_script import fold, unknown_share

TEXT = """\
server
\t            1155 work+0xc (/srv/server)
\t            1198 main (/srv/server)
\t           2724a __libc_start_call_main (/usr/lib/x86_64-linux-gnu/libc.so.6)

pool worker 3
\tffffffff9a4d2b10 tcp_sendmsg ([kernel.kallsyms])
\t            f00d store::put(std::map<int, char>&, int) const (/srv/server (deleted))
\t               0 [unknown] ([unknown])

server
\t            1155 work+0xc (/srv/server)
\t            1198 main (/srv/server)
\t           2724a __libc_start_call_main (/usr/lib/x86_64-linux-gnu/libc.so.6)

server

"""


def test_samples_become_call_chains_from_the_outermost_frame_on() -> None:
    found = fold(TEXT)
    assert dict(zip(found["chain"], found["samples"], strict=True)) == {
        "__libc_start_call_main (libc.so.6);main (server);work+0xc (server)": 2,
        "[unknown] ([unknown]);store::put(std::map<int, char>&, int) const (server);"
        "tcp_sendmsg (kernel)": 1,
    }
    assert found["samples"].dtype == "int64"


def test_nothing_seen_is_a_table_without_rows() -> None:
    assert list(fold("").columns) == ["chain", "samples"]
    assert fold("").empty
    assert unknown_share(fold("")) == 0


def test_a_semicolon_in_a_name_parts_no_frames() -> None:
    assert list(fold("a\n\t 1 operator;(int) (/x)\n\n")["chain"]) == ["operator:(int) (x)"]


def test_the_share_of_nameless_functions_counts_samples() -> None:
    table = pd.DataFrame({"chain": ["main (a)", "main (a);[unknown] (b)"], "samples": [3, 1]})
    assert unknown_share(table) == pytest.approx(0.25)


words = st.text("aZ_:<&*,~0(", min_size=1, max_size=5)
names = st.builds("{} {}".format, words, words) | words
files = st.text("ac-+._01", min_size=1, max_size=5)
chains = st.lists(st.tuples(names, files), min_size=1, max_size=4)


@given(st.lists(chains, max_size=5))
def test_any_call_chains_come_back_with_their_counts(seen: list[list[tuple[str, str]]]) -> None:
    text = "".join(
        "a thread\n"
        + "".join(f"\t    7f00 {name} (/usr/{file})\n" for name, file in reversed(frames))
        + "\n"
        for frames in seen
    )
    found = fold(text)
    written = [";".join(f"{name} ({file})" for name, file in frames) for frames in seen]
    assert dict(zip(found["chain"], found["samples"], strict=True)) == {
        chain: written.count(chain) for chain in written
    }
