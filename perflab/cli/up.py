"""``perflab stack up``: a stack that stays."""

from __future__ import annotations

from typing import Annotated

import typer

from perflab.cli.completing import stack_names
from perflab.cli.terminal import console as make_console


def command(
    stack: Annotated[
        str,
        typer.Argument(
            help="stack to start; an unknown name is answered with all of them",
            autocompletion=stack_names,
        ),
    ],
    backend: Annotated[str, typer.Option(help="auto, docker or process")] = "auto",
) -> None:
    """Start a stack and leave it running; 'perflab stack down' ends it.

    Example: perflab stack up metricstream --backend process
    """
    from perflab.errors import ParameterError
    from perflab.host.placing import placement
    from perflab.parameters import did_you_mean
    from perflab.stacks.choice import BACKENDS, choose
    from perflab.stacks.residents import stand
    from perflab.systems import ready_stacks

    stacks = ready_stacks()
    problems = []
    if stack not in stacks:
        problems.append(
            f"no stack '{stack}'{did_you_mean(stack, stacks)}; stacks: {', '.join(stacks)}"
        )
    if backend not in BACKENDS:
        problems.append(f"backend '{backend}' is not one of {', '.join(BACKENDS)}")
    if problems:
        raise ParameterError("perflab stack up", problems)
    console = make_console()
    chosen = stacks[stack]
    for name, url in stand(chosen.plan(), choose(backend), placement(), console.print).items():
        console.print(f"{name}: {url}", highlight=False)
    if chosen.hint:
        console.print(chosen.hint, highlight=False, markup=False)
