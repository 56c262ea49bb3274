"""``perflab completion``: what a shell needs to complete commands, experiments and runs."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

SHELLS = ("bash", "zsh", "fish")
# The script sets it when the shell asks what could come next.
VARIABLE = "_PERFLAB_COMPLETE"


def command(
    shell: Annotated[str, typer.Argument(help="bash, zsh or fish; yours unless given")] = "",
) -> None:
    """Print a completion script: eval "$(perflab completion bash)" in ~/.bashrc.

    Example: perflab completion zsh
    """
    from typer._completion_shared import get_completion_script

    from perflab.errors import ParameterError

    wanted = shell or Path(os.environ.get("SHELL", "")).name
    if wanted not in SHELLS:
        raise ParameterError(
            "perflab completion", [f"no script for shell '{wanted}'; there is {', '.join(SHELLS)}"]
        )
    print(get_completion_script(prog_name="perflab", complete_var=VARIABLE, shell=wanted))


def prepare() -> None:
    """Make the application answer the shell; needed only where VARIABLE is set."""
    from typer._completion_classes import completion_init

    completion_init()
