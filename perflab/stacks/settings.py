"""The settings of running services: the lab applies them, and checks what the services report.

The lab's own connection to a PostgreSQL server goes straight to it and never through the link,
which is part of what is measured.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

import psycopg2
from psycopg2 import sql

from perflab.errors import ServiceFailed, SettingRefused, StackError
from perflab.stacks.asking import ask
from perflab.stacks.backend import HOST, Instance
from perflab.stacks.plan import Node, StackPlan
from perflab.stacks.spec import ServiceSpec, Value, is_same

RELOADED_WITHIN_S, ASK_AGAIN_S = 5.0, 0.02
# The server ends a statement that takes longer.
STATEMENT_TIMEOUT_MS = 60_000
# `pg_settings` leaves out settings of the lab's own (`perflab.flush_us`).
SETTINGS_IN_FORCE = """
    SELECT name, current_setting(name) FROM unnest(%s::text[]) AS name
    WHERE current_setting(name, true) IS NOT NULL
"""
WAITS = """
    SELECT coalesce(state, ''), coalesce(wait_event_type, ''), coalesce(wait_event, ''), count(*)
    FROM pg_stat_activity
    WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()
    GROUP BY 1, 2, 3
"""


class Database:
    """One connection to a server of the lab, in autocommit."""

    def __init__(
        self, port: int, secret: str, name: str = "postgres", database: str = "perflab"
    ) -> None:
        self._name = name
        self._options: dict[str, Any] = {
            "host": HOST,
            "port": port,
            "dbname": database,
            "user": "perflab",
            "password": secret,
            "connect_timeout": 5,
            "options": f"-c statement_timeout={STATEMENT_TIMEOUT_MS}",
            "application_name": "perflab-lab",
        }
        self._connection: Any = None

    def rows(self, statement: Any, values: tuple[object, ...] = ()) -> list[tuple[Any, ...]]:
        """Run one statement and return its rows, if any.

        Raises ServiceFailed where the server does not answer in time, and StackError where it
        refuses the statement.
        """
        try:
            if self._connection is None:
                self._connection = psycopg2.connect(**self._options)
                self._connection.autocommit = True
            with self._connection.cursor() as cursor:
                cursor.execute(statement, values)
                return cursor.fetchall() if cursor.description else []
        except (psycopg2.OperationalError, psycopg2.InterfaceError) as error:
            self.close()
            raise ServiceFailed(self._name, f"the database does not answer: {error}") from None
        except psycopg2.Error as error:
            raise StackError(f"database '{self._name}' refuses: {str(error).strip()}") from None

    def close(self) -> None:
        """Close the connection; the next statement opens a new one."""
        if self._connection is not None:
            connection, self._connection = self._connection, None
            connection.close()

    def waits(self) -> list[tuple[str, str, str, int]]:
        """Return state, wait event type, wait event and number of the client backends."""
        return [(row[0], row[1], row[2], int(row[3])) for row in self.rows(WAITS)]

    def apply(self, spec: ServiceSpec, settings: Mapping[str, Value]) -> None:
        """Set settings of scope ``reload`` and wait until the server shows the new values.

        Raises SettingRefused where the server still shows another value after five seconds.
        """
        if self._agrees(spec, settings):
            return
        for name, value in settings.items():
            parameter = sql.Identifier(spec.settings[name].parameter or name)
            statement = sql.SQL("ALTER SYSTEM SET {} = %s").format(parameter)
            self.rows(statement, (str(value),))
        self.rows("SELECT pg_reload_conf()")
        deadline = time.monotonic() + RELOADED_WITHIN_S
        while not self._agrees(spec, settings):
            if time.monotonic() > deadline:
                shown = self.settings(spec)
                raise SettingRefused(f"service '{self._name}' keeps {shown}, wanted {settings}")
            time.sleep(ASK_AGAIN_S)

    def _agrees(self, spec: ServiceSpec, planned: Mapping[str, Value]) -> bool:
        shown = self.settings(spec)
        return all(name in shown and is_same(shown[name], planned[name]) for name in planned)

    def settings(self, spec: ServiceSpec) -> dict[str, Value]:
        """Return the settings that the server knows."""
        names = {setting.parameter or name: name for name, setting in spec.settings.items()}
        return {
            names[parameter]: text
            for parameter, text in self.rows(SETTINGS_IN_FORCE, (list(names),))
        }


Line = Callable[[Instance], Database]


def agree(
    plan: StackPlan, instances: Mapping[str, Instance], line: Line
) -> dict[str, dict[str, Any]]:
    """Apply the settings of a plan to its running services; return what they report, by node.

    ``instances`` are by node; ``line`` returns the connection to a PostgreSQL instance.

    Raises SettingRefused where a service, or a database through a service's connection pool, shows
    another value than the plan's or none. Raises StackError where a service does not answer.
    """
    for node in plan.nodes:
        apply(node, instances[node.name], line)
    shown = {node.name: reported(node, instances[node.name], line) for node in plan.nodes}
    if plan.database:
        server = instances[plan.database].launch.spec
        planned = server.with_defaults(plan.node(plan.database).settings, "reload")
        for node in plan.nodes:
            if isinstance(shown[node.name].get("database"), dict):
                shown[node.name] = _seen_by_pool(node, instances[node.name], line, planned)
    return shown


def _seen_by_pool(
    node: Node, instance: Instance, line: Line, planned: Mapping[str, Value]
) -> dict[str, Any]:
    """Return what a service reports once its pool sees the planned settings of its database.

    Each backend reads new settings by itself: on a busy machine one is later than another.
    """
    deadline = time.monotonic() + RELOADED_WITHIN_S
    while True:
        shown = reported(node, instance, line)
        if time.monotonic() > deadline:
            refuse_difference(f"{node.name} (through its own pool)", planned, shown["database"])
        if not _differences(planned, shown["database"]):
            return shown
        time.sleep(ASK_AGAIN_S)


def apply(node: Node, instance: Instance, line: Line) -> None:
    """Give a running service its node's settings of scope ``reload``."""
    spec = instance.launch.spec
    planned = spec.with_defaults(node.settings, "reload")
    if not planned or spec.report is None:
        return
    if spec.is_postgres:
        line(instance).apply(spec, planned)
    else:
        ask(instance.launch.control_port, spec.report.http, planned)


def reported(node: Node, instance: Instance, line: Line) -> dict[str, Any]:
    """Return the settings that a service reports; refuse those that it leaves out or changes.

    What a service that reports nothing was started with is not checked; plans say so
    (:func:`perflab.stacks.spec.unchecked`).
    """
    spec = instance.launch.spec
    planned = spec.with_defaults(node.settings, None if spec.report else "reload")
    shown: dict[str, Any] = {}
    if spec.is_postgres:
        shown = line(instance).settings(spec)
    elif spec.report is not None:
        shown = ask(instance.launch.control_port, spec.report.http)
    if missing := [key for key in planned if key not in shown]:
        way = "let [report] http of its service.toml name a path that answers a JSON object of them"
        if spec.is_postgres:
            way = "let 'parameter' of the setting in its service.toml be a name of the server's"
        raise SettingRefused(
            f"service '{node.name}' does not report {', '.join(missing)}, so the lab cannot check "
            f"the settings in force; {way}"
        )
    refuse_difference(node.name, planned, shown)
    return shown


def refuse_difference(name: str, planned: Mapping[str, Value], shown: Mapping[str, Any]) -> None:
    """Raise SettingRefused, with every setting whose reported value differs from the planned."""
    if different := _differences(planned, shown):
        raise SettingRefused(f"service '{name}' runs with other settings: {'; '.join(different)}")


def _differences(planned: Mapping[str, Value], shown: Mapping[str, Any]) -> list[str]:
    return [
        f"{key} is {shown[key]!r}, wanted {value!r}"
        for key, value in planned.items()
        if key in shown and not is_same(shown[key], value)
    ]
