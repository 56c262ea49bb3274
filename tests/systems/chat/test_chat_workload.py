"""The chat workload against the real service: the users' actions and their recording."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from perflab import api
from perflab.load.users import actions as actions_of
from perflab.paths import services_dir
from perflab.recordings import Run, published, published_value
from perflab.systems.chat.rungs import RUNGS, SCENARIOS, published_ms
from perflab.systems.chat.stacks import (
    ChatParameters,
    Rung,
    actions,
    beat_s,
    load_s,
    workload,
)
from perflab.systems.chat.users import CODECS, FIELDS, TEXTS, ChatUser, Connected
from tests.systems.planned import plan_of

sys.path.append(str(Path(__file__).parents[2] / "services"))
sys.path.extend(str(services_dir() / folder) for folder in ("common", "chat"))
from chatting import compiled_codecs

QUICK = {
    "backend": "process", "blocks": 1, "seed": 5, "join_s": 0.02, "action_s": 0.5,
    "plateau_s": 2.0, "bcrypt_rounds": 4,
}  # fmt: skip
RUNGS_SHOWN = ("json_20", "protobuf_login_20", "best_20")
TEXT = st.text(st.characters(codec="utf-8"), max_size=30)
NUMBER = st.integers(-(2**63), 2**63 - 1)


@st.composite
def envelopes(draw: st.DrawFn) -> dict[str, object]:
    kind = draw(st.sampled_from(sorted(FIELDS)))
    fields = {name: draw(TEXT if name in TEXTS else NUMBER) for name in FIELDS[kind]}
    return {"kind": kind, **fields}


def in_service_words(fields: dict[str, object]) -> object:
    from chat.envelopes import KINDS, tag_of

    kind = next(kind for kind in KINDS if tag_of(kind) == fields["kind"])
    return kind(**{name: value for name, value in fields.items() if name != "kind"})


@pytest.mark.parametrize("codec", CODECS)
# Preparing the alphabet and compiling chat.proto take their time once.
@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(fields=envelopes())
def test_client_and_service_read_each_others_frames(codec: str, fields: dict[str, object]) -> None:
    service = compiled_codecs().CODERS[codec]["envelope"]
    envelope = in_service_words(fields)
    by_client = CODECS[codec].encode(fields)
    assert service.decode(by_client.decode() if CODECS[codec].text else by_client) == envelope
    by_service = service.encode(envelope)
    read = CODECS[codec].decode(by_service.encode() if isinstance(by_service, str) else by_service)
    assert read == fields


@pytest.mark.parametrize("frame", [b"", b"\x0a", b"\x0a\x05ab", b"\x7a\x00", b"\x0d\x01"])
def test_a_damaged_protobuf_frame_is_refused(frame: bytes) -> None:
    with pytest.raises(ValueError, match=r"frame|kind"):
        CODECS["protobuf"].decode(frame)


def test_actions_are_chosen_as_published() -> None:
    chosen, weights = actions_of(ChatUser)
    # Load workers read no tables, so the script repeats the numbers.
    assert dict(zip(chosen, weights, strict=True)) == {
        name: published_value("chat", "workload", "all", f"{name}_share")
        for name in ("send", "join", "leave")
    }


def test_every_published_row_is_a_rung_with_its_users_and_percentiles() -> None:
    table = published("chat")
    users = table[(table["place"] == "published results") & (table["measure"] == "users")]
    users_of = dict(zip(users["scenario"], users["value"].astype(int), strict=True))
    assert len(SCENARIOS) == 19
    for name, scenario in SCENARIOS.items():
        assert RUNGS[name].users == users_of.get(scenario, 250)
        assert len(published_ms(name)) == 3
    bound = RUNGS["bound_425"]
    join_delay_s = published_value("chat", "published results", bound.published_row, "join_delay")
    assert beat_s(ChatParameters(), bound) == pytest.approx(join_delay_s)
    assert published_ms("json") == {90: 203, 95: 246, 99: 311}
    later = workload(ChatParameters(), Rung(first_delay="scaled")).arrivals
    assert (later.parameters["first_s"], later.join_s, later.users) == (62.5, 0.25, 250)


@pytest.mark.parametrize("delay", ["action", "scheduled", "scaled", "together", "spread"])
def test_the_number_of_actions_gives_the_plateau(delay: str) -> None:
    rung = Rung(first_delay=delay, users=100)
    plain = ChatParameters(plateau_s=20)
    apart_s = 6.0 if delay in ("together", "spread") else 99 * 0.25
    acting_s = (actions(plain, rung) - 1) * 6.0
    assert 20 <= acting_s - apart_s < 26
    assert load_s(plain, rung) > 100 * 0.25 + acting_s


@pytest.fixture(scope="module")
def run() -> Run:
    return api.run("chat_ladder", {**QUICK, "rungs": RUNGS_SHOWN})


@pytest.mark.alone
@pytest.mark.slow
def test_every_delivery_is_recorded_and_none_is_lost(run: Run) -> None:
    trials = run.trials()
    assert set(trials["treatment"]) == {f"rung={name}" for name in RUNGS_SHOWN}
    codes = {reason.code for reasons in trials["reasons"] for reason in reasons}
    assert not codes & {"chat.received", "chat.lost"}
    assert trials["cpu_us_per_message"].between(1, 1000).all()
    bytes_of = trials.set_index("treatment")["wire_bytes_per_message"]
    json_bytes, best_bytes = bytes_of["rung=json_20"], bytes_of["rung=best_20"]
    assert json_bytes < best_bytes, "even short texts have something to save"
    for row in trials.itertuples():
        table = run.table("messages", [row.trial_id])
        assert table["user"].nunique() == 21
        assert (table["kind"] == "delivery").sum() == row.messages_delivered
        deliveries = table[table["kind"] == "delivery"]
        assert (deliveries["at_ns"] > deliveries["planned_ns"]).all()
        # Sent and delivered messages carry the same instants.
        sent = set(table.loc[table["kind"] == "send", "planned_ns"])
        assert set(deliveries["planned_ns"]) <= sent


@pytest.mark.promise
@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"actions": 41}, "actions is 41 (published: 40)"),
        ({"actions": None}, "users act for 30 s (published: 40 times each)"),
        ({"join_s": 0.3}, "join_s is 0.3 (published: 0.25)"),
        ({"action_s": 5.5}, "action_s is 5.5 (published: 6)"),
        ({"subscriber_share": 0.5}, "subscriber_share is 0.5 (published: 0.64)"),
        ({"bcrypt_rounds": 9}, "bcrypt_rounds is 9 (not published, by default: 11)"),
        ({"preset": "quick", "actions": 40}, "a ping does not wait"),
        # In the rows of the study these change nothing.
        ({"plateau_s": 12.0, "ramp_s": 20.0}, ""),
    ],
)
def test_a_run_repeats_rows_of_the_study_at_its_load_alone(
    changes: dict[str, object], words: str
) -> None:
    values = {"preset": "published", "rungs": ["json_login"], **changes}
    plan = plan_of("chat_ladder", **values)
    told = [warning for warning in plan.warnings if warning.code == "chat.load"]
    assert len(told) == bool(words)
    assert all(words in warning for warning in told)
    assert ("scenario" in plan.treatments[0].levels) == (not words)


@pytest.mark.parametrize("delay", ["action", "scheduled"])
def test_a_slow_login_moves_the_beat_unless_it_is_scheduled(
    delay: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    arrivals = workload(ChatParameters(), Rung(first_delay=delay)).arrivals
    user = ChatUser(8, 1, arrivals.parameters)
    # The login was due 2 s after the load began, and has just ended, 3 s after that.
    monkeypatch.setattr(ChatUser, "load_began_ns", user.now_ns() - 5_000_000_000)
    due_s = (user.first_due_ns() - user.load_began_ns) / 1e9
    after_s = {"action": 5, "scheduled": 2}[delay]
    assert due_s == pytest.approx(after_s + 6, abs=0.1)


def test_a_login_that_lasts_into_the_messages_fails_the_load(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def logged_in(_: ChatUser) -> None:
        """Log in, whatever the service says."""

    monkeypatch.setattr(Connected, "on_start", logged_in)
    user = ChatUser(8, 1, workload(ChatParameters(), Rung()).arrivals.parameters)
    monkeypatch.setattr(ChatUser, "load_began_ns", user.now_ns())
    asyncio.run(user.on_start())
    monkeypatch.setattr(ChatUser, "load_began_ns", user.now_ns() - 10**12)
    with pytest.raises(RuntimeError, match=r"logins must be over 63\.5 s after the load began"):
        asyncio.run(user.on_start())


def test_hurried_joins_leave_every_action_where_it_was() -> None:
    parameters = ChatParameters()
    plain, hurried = Rung(users=100), Rung(users=100, ramp_s=5.0)
    slow, quick = (workload(parameters, rung).arrivals for rung in (plain, hurried))
    assert (slow.join_s, quick.join_s) == (0.25, 0.05)
    assert slow.actions == quick.actions
    assert slow.parameters["beat_s"] == quick.parameters["beat_s"] == 0.25
    assert (slow.parameters["begin_s"], quick.parameters["begin_s"]) == (26.0, 6.0)
