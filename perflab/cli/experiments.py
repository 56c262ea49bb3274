"""``perflab experiments`` lists experiments, or parameters of one; ``perflab new`` makes one."""

from __future__ import annotations

from collections.abc import Mapping
from textwrap import fill, indent
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text

from perflab.cli.outputs import make_console, print_shown
from perflab.paths import notebook_file

if TYPE_CHECKING:
    from pydantic import BaseModel

    from perflab.trials.experiment import Experiment

HOW = (
    "Set them with 'perflab run {name} -p parameter=value' (a list as -p parameter=a,b), or in the "
    "cell 'parameters' of {notebook}."
)
INDENT = "    "
new_app = typer.Typer(no_args_is_help=True, help="Make a project, an experiment or a notebook.")


def command(
    name: Annotated[
        str,
        typer.Argument(
            help="show the parameters of this experiment: default, allowed values and meaning",
        ),
    ] = "",
) -> None:
    """List the experiments and their questions, or the parameters of one.

    Example: perflab experiments synchronous_commit
    """
    from perflab.reports.runs import questions
    from perflab.systems import experiment

    if name:
        _print_one(experiment(name))
        return
    print_shown(questions())
    print("\n'perflab experiments NAME' lists the parameters of one.")


def _print_one(experiment: Experiment) -> None:
    from perflab.trials.run_parameters import RunParameters

    console = make_console()
    console.print(Text(f"{experiment.title}\n{experiment.question}\n"))
    # What only this experiment has comes first.
    of_all = RunParameters.model_fields
    for item in sorted(
        parameters_of(experiment.parameters), key=lambda item: item["name"] in of_all
    ):
        default = f"{item['name']} = {typed(item['default'])}"
        title = Text(fill(default, console.width, subsequent_indent=INDENT))
        title.stylize("bold", 0, len(item["name"]))
        meaning = f"{item['meaning']} ({item['allowed']})"
        console.print(title)
        console.print(Text(indent(fill(meaning, console.width - len(INDENT)), INDENT)))
    notebook = notebook_file(experiment.name)
    console.print(Text("\n" + HOW.format(name=experiment.name, notebook=notebook)))


def parameters_of(model: type[BaseModel]) -> list[dict[str, Any]]:
    """Return name, default, allowed values in words, and meaning of each parameter."""
    schemas = model.model_json_schema()["properties"]
    fields = model.model_fields
    return [
        {
            "name": name,
            "default": fields[name].get_default(call_default_factory=True),
            "allowed": allowed(schema),
            "meaning": schema.get("description", ""),
        }
        for name, schema in schemas.items()
    ]


def allowed(schema: Mapping[str, Any]) -> str:
    """Return in words which values a JSON schema allows."""
    if "anyOf" in schema:
        return " or ".join(map(allowed, schema["anyOf"]))
    if "$ref" in schema:
        return "table"
    if "const" in schema:
        return str(schema["const"])
    if "enum" in schema:
        return ", ".join(dict.fromkeys(map(str, schema["enum"])))
    if schema.get("type") == "array":
        return f"list: {allowed(schema['items'])}"
    if schema.get("type") in ("integer", "number"):
        kind = "whole number" if schema["type"] == "integer" else "number"
        return f"{kind}{_range(schema)}"
    kinds = {"null": "none", "string": "text", "boolean": "true or false", "object": "table"}
    return kinds.get(str(schema.get("type")), "anything")


def _range(schema: Mapping[str, Any]) -> str:
    words = {
        "minimum": "from {:,.12g}",
        "exclusiveMinimum": "above {:,.12g}",
        "maximum": "to {:,.12g}",
        "exclusiveMaximum": "below {:,.12g}",
    }
    # Larger bounds exist for the machine and do not help the reader.
    bounds = [
        words[key].format(schema[key]) for key in words if key in schema and schema[key] < 2**62
    ]
    return ", " + " ".join(bounds) if bounds else ""


def typed(default: Any) -> str:
    """Return a default as somebody types it after ``-p name=``."""
    if default is None:
        return "none"
    if isinstance(default, tuple):
        return ", ".join(map(typed, default)) or "empty"
    if isinstance(default, bool):
        return str(default).lower()
    return f"{default:g}" if isinstance(default, float) else str(default) or "empty"


@new_app.callback()
def new() -> None:
    """Make a project, an experiment or a notebook that is ready to run.

    Example: perflab new experiment checkout_speed
    """


@new_app.command("project")
def new_project() -> None:
    """Make this folder a project: results stay here, and so do experiments of your own.

    Writes perflab.toml, with what it finds of your service (Procfile, pyproject.toml,
    requirements.txt, package.json, go.mod), the notebook duel.ipynb, and lines of .gitignore. If
    anything is wrong, nothing is written.

    Example: perflab new project
    """
    from perflab.cli import scaffold

    files, found = scaffold.new_project()
    print(*files, sep="\n")
    entries = {**found.service, **found.needs, **found.env}
    if entries:
        print("\nperflab.toml has what was found here; look through it:")
    for name, (value, why) in entries.items():
        print(f"  {name} = {value}   ({why})")
    if lacking := [name for name in ("command", "setup", "health") if name not in entries]:
        print(f"\nnot found: {', '.join(lacking)} (examples are in perflab.toml)")
    print("what users request is not looked for: write path or [[load.requests]]")
    print("\nperflab doctor                 # what of it does not work here")
    print("perflab duel --against main    # or --against HEAD~1 --working-tree, and so on")


@new_app.command("notebook")
def new_notebook(
    name: Annotated[str, typer.Argument(help="a notebook of the lab, such as sync_vs_async")],
) -> None:
    """Copy a notebook of the lab into this folder.

    Example: perflab new notebook sync_vs_async
    """
    from perflab.cli.scaffold import copy_notebook

    file = copy_notebook(name)
    print(f"{file}\n\njupyter lab {file.name}")
    print(f"papermill {file.name} {name}-done.ipynb -p blocks 4")


@new_app.command("experiment")
def new_experiment(
    name: Annotated[str, typer.Argument(help="lower-case letters, digits and _; a letter first")],
) -> None:
    """Create an experiment: its module, notebook, service, and a test.

    The service is that of perflab.toml if that has a command, else an example. It runs as it is:
    then vary what is in question (docs/how-to/own-experiment.md). If anything is wrong, nothing is
    written.

    Example: perflab new experiment checkout_speed
    """
    from perflab.cli.scaffold import lay_out

    home, files = lay_out(name)
    print(*files, sep="\n")
    notebook = home / "notebooks" / f"{name}.ipynb"
    print(f"\nperflab run {name} -p blocks=4")
    print(f"papermill {notebook} {name}-done.ipynb -p blocks 4")
    print(f"pytest {home / 'tests'}")
