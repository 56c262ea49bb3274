"""Watched functions: the samples that count, and the patterns that are allowed."""

from __future__ import annotations

import math

import pandas as pd

from perflab.instruments.profiler import unseen, watched_columns, watched_samples

WRITE = "Connection.write (chat/connection.py)"
ENCODE = "PerMessageDeflate.encode (websockets/extensions/permessage_deflate.py)"
DUMPS = "JSONEncoder.encode (json/encoder.py)"


def chains_of(counts: dict[str, int]) -> pd.DataFrame:
    return pd.DataFrame(counts.items(), columns=["chain", "samples"])


def test_a_sample_counts_wherever_the_function_is_in_its_chain() -> None:
    # A function that calls itself counts once.
    chains = chains_of({f"main;{WRITE};{ENCODE};{WRITE}": 3, f"main;{WRITE}": 2, "main": 5})
    watch = {"send": r"\.write \(", "deflate": r"permessage_deflate\.py"}
    assert watched_samples(chains, watch) == {"send": 5, "deflate": 3}


def test_a_pattern_matches_one_frame_and_not_the_chain() -> None:
    chains = chains_of({f"main;{WRITE};{DUMPS}": 7})
    assert watched_samples(chains, {"both": r"write.*encode"}) == {"both": 0}
    assert watched_samples(chains, {"whole": r"^JSONEncoder.*encoder\.py\)$"}) == {"whole": 7}


def test_share_and_time_per_message_come_from_the_samples() -> None:
    row = watched_columns({"send": 50}, samples=200, rate_hz=100, messages=10_000)
    # 50 samples at 100 a second are half a second; over 10,000 messages that is 50 us each.
    assert row == {"profile_send_share": 0.25, "profile_send_us_per_message": 50.0}


def test_a_function_in_no_sample_is_zero_with_a_warning() -> None:
    watch = {"send": "write", "gone": "no_such_function"}
    counts = watched_samples(chains_of({f"main;{WRITE}": 10}), watch)
    row = watched_columns(counts, samples=10, rate_hz=100, messages=10)
    assert (row["profile_gone_share"], row["profile_gone_us_per_message"]) == (0.0, 0.0)
    (warning,) = unseen(counts, watch, 10)
    assert "'gone' is in none of 10 samples" in warning
    assert "no_such_function" in warning
    assert all(map(math.isnan, watched_columns({"send": 0}, 0, 100, messages=0).values()))
