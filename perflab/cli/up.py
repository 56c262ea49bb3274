"""``perflab up``: a stack that stays."""

from __future__ import annotations

from typing import Annotated

import typer

from perflab.cli.console import console as make_console

# Of the chat service: as many as the published study's users, and one to watch them.
ACCOUNTS = 251


def command(
    stack: Annotated[str, typer.Argument(help="stack to start: inference or chat")],
    backend: Annotated[str, typer.Option(help="auto, docker or process")] = "auto",
) -> None:
    """Start a stack and leave it running; 'perflab down' ends it."""
    from perflab.errors import ParameterError
    from perflab.host.placement import placement
    from perflab.parameters import did_you_mean
    from perflab.stacks.backend import BACKENDS, choose
    from perflab.stacks.standing import stand
    from perflab.systems.chat import service as chat
    from perflab.systems.chat.users import PASSWORD
    from perflab.systems.inference.service import InferenceParameters
    from perflab.systems.inference.service import stack as inference_stack

    stacks = {
        "inference": lambda: inference_stack(InferenceParameters()),
        "chat": lambda: chat.stack(chat.ChatParameters(), chat.Rung(), ACCOUNTS),
    }
    problems = []
    if stack not in stacks:
        problems.append(
            f"no stack '{stack}'{did_you_mean(stack, stacks)}; stacks: {', '.join(stacks)}"
        )
    if backend not in BACKENDS:
        problems.append(f"backend '{backend}' is not one of {', '.join(BACKENDS)}")
    if problems:
        raise ParameterError("perflab up", problems)
    console = make_console()
    plan = stacks[stack]()
    for name, url in stand(plan, choose(backend), placement(), console.print).items():
        console.print(f"{name}: {url}", highlight=False)
    if stack == "chat":
        last = f"user{ACCOUNTS - 1}"
        console.print(f"open it in a browser: user0 to {last}, password '{PASSWORD}'")
