"""The lab's own line to a PostgreSQL of a stack: settings, reset, counts and waits.

It goes straight to the server, never through the link, so that it is not part of what is measured.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from typing import Any

import psycopg2
from psycopg2 import sql

from perflab.errors import ServiceFailed, SettingRefused
from perflab.stacks.backend import HOST
from perflab.stacks.spec import ServiceSpec, Value

WAITS = """
    SELECT coalesce(state, ''), coalesce(wait_event_type, ''), coalesce(wait_event, ''), count(*)
    FROM pg_stat_activity
    WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()
    GROUP BY 1, 2, 3
"""


class Database:
    """One connection to a server of the lab, in autocommit."""

    def __init__(self, port: int, secret: str, name: str = "postgres") -> None:
        self._name = name
        self._options: dict[str, Any] = {
            "host": HOST,
            "port": port,
            "dbname": "perflab",
            "user": "perflab",
            "password": secret,
            "connect_timeout": 5,
            "application_name": "perflab-lab",
        }
        self._connection: Any = None

    def _rows(self, statement: Any, values: tuple[object, ...] = ()) -> list[tuple[Any, ...]]:
        try:
            if self._connection is None:
                self._connection = psycopg2.connect(**self._options)
                self._connection.autocommit = True
            with self._connection.cursor() as cursor:
                cursor.execute(statement, values)
                return cursor.fetchall() if cursor.description else []
        except psycopg2.Error as error:
            self.close()
            raise ServiceFailed(self._name, f"the database does not answer: {error}") from None

    def close(self) -> None:
        """Close the connection; the next statement opens a new one."""
        if self._connection is not None:
            connection, self._connection = self._connection, None
            connection.close()

    def execute(self, statements: Iterable[str]) -> None:
        """Run statements, each on its own."""
        for statement in statements:
            self._rows(statement)

    def count(self, statement: str) -> int:
        """Return the single number that a statement selects."""
        return int(self._rows(statement)[0][0])

    def waits(self) -> list[tuple[str, str, str, int]]:
        """Return state, wait event type, wait event and number of the client backends."""
        return [(row[0], row[1], row[2], int(row[3])) for row in self._rows(WAITS)]

    def apply(self, spec: ServiceSpec, settings: Mapping[str, Value]) -> None:
        """Set reload-scope settings and wait until a new look at them shows the new values.

        Raises
        ------
        SettingRefused
            The server still shows another value after five seconds.
        """
        wanted = {
            spec.settings[name].parameter or name: str(value) for name, value in settings.items()
        }
        if self._shown(wanted) == wanted:
            return
        for name, value in wanted.items():
            self._rows(sql.SQL("ALTER SYSTEM SET {} = %s").format(sql.Identifier(name)), (value,))
        self._rows("SELECT pg_reload_conf()")
        deadline = time.monotonic() + 5.0
        while self._shown(wanted) != wanted:
            if time.monotonic() > deadline:
                raise SettingRefused(
                    f"service '{self._name}' shows {self._shown(wanted)}, wanted {wanted}"
                )
            time.sleep(0.02)

    def _shown(self, wanted: Mapping[str, str]) -> dict[str, str]:
        rows = self._rows(
            "SELECT name, setting FROM pg_settings WHERE name = ANY(%s)", (list(wanted),)
        )
        return {str(row[0]): str(row[1]) for row in rows}
