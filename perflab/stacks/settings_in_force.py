"""Settings of running services: set where they can be, and believed only as they are reported."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from perflab.errors import SettingRefused
from perflab.stacks.asking import ask
from perflab.stacks.backend import Instance
from perflab.stacks.database import Database
from perflab.stacks.plan import Node, StackPlan
from perflab.stacks.spec import ServiceSpec, Value, is_same

Line = Callable[[Instance], Database]


def agree(
    plan: StackPlan, instances: Mapping[str, Instance], line: Line
) -> dict[str, dict[str, Any]]:
    """Apply the settings of a plan to its running services; return what they report, by node.

    ``instances`` serve its nodes, by their names; ``line`` opens a line to a PostgreSQL instance.

    Raises SettingRefused where a service, or what its connection pool sees of a database, shows
    something else than the plan asks for, or leaves a setting out: what nobody shows is not
    believed. Raises StackError where a service does not answer.
    """
    for node in plan.nodes:
        apply(node, instances[node.name], line)
    shown = {node.name: reported(node, instances[node.name], line) for node in plan.nodes}
    if plan.database:
        server = instances[plan.database].launch.spec
        wanted = server.resolve(plan.node(plan.database).settings, "reload")
        for name, values in shown.items():
            if isinstance(values.get("database"), dict):
                refuse_difference(f"{name} (through its own pool)", wanted, values["database"])
    return shown


def apply(node: Node, instance: Instance, line: Line) -> None:
    """Give a running service the settings of scope ``reload`` that its node asks for."""
    spec = instance.launch.spec
    wanted = spec.resolve(node.settings, "reload")
    if not wanted or spec.reload is None:
        return
    if spec.reload.kind == "postgres":
        line(instance).apply(spec, wanted)
    else:
        ask(instance.launch.control_port, spec.reload.http, wanted)


def reported(node: Node, instance: Instance, line: Line) -> dict[str, Any]:
    """Return what a service says of its settings, once it is what its node asks for."""
    spec = instance.launch.spec
    wanted = spec.resolve(node.settings, "image", "start", "reload")
    shown: dict[str, Any] = {}
    if spec.is_postgres:
        shown = line(instance).settings(spec)
    elif spec.report is not None:
        shown = ask(instance.launch.control_port, spec.report.http)
    refuse_silence(node.name, spec, wanted, shown)
    refuse_difference(node.name, wanted, shown)
    return shown


def refuse_silence(
    name: str, spec: ServiceSpec, wanted: Mapping[str, Value], shown: Mapping[str, Any]
) -> None:
    """Raise SettingRefused when a service leaves out a setting that it was given."""
    missing = [key for key in wanted if key not in shown]
    if not missing:
        return
    if spec.report is None:
        way = "let [report] http of its service.toml name a path that answers a JSON object of them"
    elif spec.is_postgres:
        way = "let 'parameter' of the setting in its service.toml be a name of pg_settings"
    else:
        way = f"let its GET {spec.report.http} answer a JSON object that holds them"
    raise SettingRefused(
        f"service '{name}' does not report {', '.join(missing)}: a setting that nobody sees in "
        f"force is not believed; {way}"
    )


def refuse_difference(name: str, wanted: Mapping[str, Value], shown: Mapping[str, Any]) -> None:
    """Raise SettingRefused for every setting that is shown with another value than wanted."""
    different = [
        f"{key} is {shown[key]!r}, wanted {value!r}"
        for key, value in wanted.items()
        if key in shown and not is_same(shown[key], value)
    ]
    if different:
        raise SettingRefused(f"service '{name}' runs with other settings: {'; '.join(different)}")
