"""The lab's own line to a PostgreSQL of a stack: settings, reset, counts and waits.

It goes straight to the server, never through the link, so that it is not part of what is measured.
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from typing import Any

import psycopg2
from psycopg2 import sql

from perflab.errors import ServiceFailed, SettingRefused, StackError
from perflab.stacks.backend import HOST
from perflab.stacks.spec import ServiceSpec, Value, is_same

RELOADED_WITHIN_S = 5.0
# What takes longer is ended by the server.
STATEMENT_TIMEOUT_MS = 60_000
# PostgreSQL's units of size, and how it writes them: a number of pages has the unit "8kB".
BYTES = {"B": 1, "kB": 1024, "MB": 1024**2, "GB": 1024**3, "TB": 1024**4}
_SIZE = re.compile(r"(\d*)(B|kB|MB|GB|TB)")
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
            "options": f"-c statement_timeout={STATEMENT_TIMEOUT_MS}",
            "application_name": "perflab-lab",
        }
        self._connection: Any = None

    def rows(self, statement: Any, values: tuple[object, ...] = ()) -> list[tuple[Any, ...]]:
        """Run one statement and return the rows that it gives, if any.

        Raises ServiceFailed where the server does not answer, or not in time, and StackError, with
        its reason, where it refuses the statement.
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
        """Set reload-scope settings and wait until a new look at them shows the new values.

        Raises SettingRefused where the server still shows another value after five seconds.
        """
        if self._agrees(spec, settings):
            return
        for name, value in settings.items():
            setting = spec.settings[name]
            known = sql.Identifier(setting.parameter or name)
            statement = sql.SQL("ALTER SYSTEM SET {} = %s").format(known)
            self.rows(statement, (f"{value}{setting.unit}",))
        self.rows("SELECT pg_reload_conf()")
        deadline = time.monotonic() + RELOADED_WITHIN_S
        while not self._agrees(spec, settings):
            if time.monotonic() > deadline:
                shown = self.settings(spec)
                raise SettingRefused(
                    f"service '{self._name}' shows {shown}, wanted {dict(settings)}"
                )
            time.sleep(0.02)

    def _agrees(self, spec: ServiceSpec, wanted: Mapping[str, Value]) -> bool:
        shown = self.settings(spec)
        return all(name in shown and is_same(shown[name], wanted[name]) for name in wanted)

    def settings(self, spec: ServiceSpec) -> dict[str, Value]:
        """Return the settings of a PostgreSQL service as the server shows them.

        Those that the server does not know are left out; sizes are in the unit of the setting.
        """
        names = {setting.parameter or name: name for name, setting in spec.settings.items()}
        rows = self.rows(
            "SELECT name, setting, coalesce(unit, '') FROM pg_settings WHERE name = ANY(%s)",
            (list(names),),
        )
        return {
            names[parameter]: _in_unit(text, unit, spec.settings[names[parameter]].unit)
            for parameter, text, unit in rows
        }


def _in_unit(text: str, unit: str, wanted: str) -> Value:
    """Return a size that PostgreSQL shows in pages (``8kB``) in the unit that is wanted."""
    size = _SIZE.fullmatch(unit)
    if size is None or not wanted:
        return text
    whole = int(text) * int(size[1] or 1) * BYTES[size[2]] / BYTES[wanted]
    return int(whole) if whole == int(whole) else whole
