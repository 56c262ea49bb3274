"""The chat service in both backends, as an experiment starts it."""

from __future__ import annotations

import os

import pytest
from chat.envelopes import Ack, Message, Send
from chatting import EASY, User, compiled_codecs, run
from running import call
from websockets.asyncio.client import connect

from perflab.host.placing import placement
from perflab.stacks import leftovers
from perflab.stacks.choice import choose
from perflab.stacks.plan import Node, StackPlan
from perflab.stacks.residents import Residents

SETTINGS = {**EASY, "codec": "protobuf", "websocket": "websockets-sansio", "loop": "uvloop"}


@pytest.mark.slow
def test_users_chat_in_both_backends(backend_name: str) -> None:
    plan = StackPlan(nodes=(Node(name="chat", service="chat", settings=SETTINGS),))
    residents = Residents(choose(backend_name), {"it": plan}, placement(), f"chat-{os.getpid()}")
    residents.prepare()
    residents.start()
    try:
        residents.activate("it")  # compares the settings in force with those that are wanted
        port = residents.instance("it", "chat").launch.port
        run(two_users_chat(port))
        shown = call(port, "GET", "/settings").body
        assert shown["protobuf_backend"] == "upb"
        assert shown["sqlite"]["journal_mode"] == "wal"
        assert shown["cores"] == list(residents.instance("it", "chat").launch.cores)
    finally:
        residents.stop()
    assert leftovers.everything() == []


async def two_users_chat(port: int) -> None:
    """Log in, connect and say something, as anyone would without the lab's parts."""
    coder = compiled_codecs().load("protobuf")["envelope"]
    users = []
    for name in ("user1", "user2"):
        body = {"user": name, "password": "correct horse"}
        login = call(port, "POST", "/login", body).body
        socket = await connect(f"ws://127.0.0.1:{port}/ws?token={login['token']}")
        users.append(User(socket, coder, name, login))
    await users[0].say(Send("channel1", "in a box?", 3))
    (heard,) = await users[1].hear_all(Message, 1)
    assert (heard.sender, heard.text) == ("user1", "in a box?")
    assert (await users[0].hear_all(Ack, 1))[0].stamp == 3
    for user in users:
        await user.socket.close()
