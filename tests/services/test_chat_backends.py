"""The chat service in both backends, as an experiment starts it."""

from __future__ import annotations

import pytest
from chat.envelopes import Ack, Message, Send
from chatting import EASY, join_at, part, run
from running import call, residing

from perflab.stacks.plan import Node, StackPlan

SETTINGS = {**EASY, "codec": "protobuf", "websocket": "websockets-sansio", "loop": "uvloop"}


@pytest.mark.slow
def test_users_chat_in_both_backends(backend_name: str) -> None:
    plan = StackPlan(nodes=(Node(name="chat", service="chat", settings=SETTINGS),))
    with residing(backend_name, {"it": plan}) as residents:
        residents.activate("it")  # compares the settings in force with those that are wanted
        port = residents.instance("it", "chat").launch.port
        run(two_users_chat(port))
        shown = call(port, "GET", "/settings").body
        assert shown["protobuf_backend"] == "upb"
        assert shown["cores"] == list(residents.instance("it", "chat").launch.cores)


async def two_users_chat(port: int) -> None:
    ann, ben = [await join_at(port, "protobuf", number) for number in (1, 2)]
    await ann.say(Send("channel1", "in a box?", 3))
    (heard,) = await ben.hear_all(Message, 1)
    assert (heard.sender, heard.text) == ("user1", "in a box?")
    assert (await ann.hear_all(Ack, 1))[0].stamp == 3
    await part(ann, ben)
