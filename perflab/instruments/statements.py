"""What a store that the lab started did during a load: its statements, their number and time."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from perflab.credentials import masked
from perflab.stacks.backend import Instance

# A statement to its number of calls and its time in ms.
Statements = Mapping[str, tuple[float, float]]
LONGEST_TEXT = 200


class PostgresStatements:
    """The statements of all databases of a server, by pg_stat_statements.

    The text is without constants, as the module has it; time is that of planning and execution.
    The lab's own database keeps the module's view, so that no user's database has it.
    """

    # A server that was preloaded counts nothing before it is told to; only a start could unload it.
    ON: Mapping[str, str] = {
        "pg_stat_statements.track": "top",
        "pg_stat_statements.track_planning": "on",
    }
    READ = """
        SELECT query, calls, total_plan_time + total_exec_time FROM pg_stat_statements(true)
        WHERE strpos(query, 'pg_stat_statements') = 0
    """

    def __init__(self, store: Instance) -> None:
        # Late: only a run with such a store needs psycopg2.
        from perflab.stacks.settings import Database

        name = store.launch.labels.service
        self._database = Database(store.launch.port, store.launch.secret, name, "postgres")

    def prepare(self) -> None:
        """Make the view where it is missing, and let the server count."""
        self._database.rows("CREATE EXTENSION IF NOT EXISTS pg_stat_statements")
        for name, value in self.ON.items():
            self._database.rows(f"ALTER SYSTEM SET {name} = '{value}'")
        self._database.rows("SELECT pg_reload_conf()")

    def begin(self) -> None:
        """Forget what was counted before."""
        self._database.rows("SELECT pg_stat_statements_reset()")

    def end(self) -> Statements:
        """Return calls and time by statement."""
        counted: dict[str, tuple[float, float]] = {}
        for text, calls, time_ms in self._database.rows(self.READ):
            name = masked(" ".join(text.split()))[:LONGEST_TEXT]
            before = counted.get(name, (0.0, 0.0))
            counted[name] = before[0] + calls, before[1] + time_ms
        return counted

    def leave(self) -> None:
        """Let the server count no more, and close the connection."""
        for name in self.ON:
            self._database.rows(f"ALTER SYSTEM RESET {name}")
        self._database.rows("SELECT pg_reload_conf()")
        self._database.close()


class RedisCommands:
    """The commands of a Redis or Valkey, by its commandstats, which it always keeps."""

    def __init__(self, store: Instance) -> None:
        self._store = store

    def prepare(self) -> None:
        """Do nothing: the server counts anyway."""

    def begin(self) -> None:
        """Read what was counted before."""
        self._before = self._read()

    def end(self) -> Statements:
        """Return calls and time by command."""
        after = self._read()
        nothing = (0.0, 0.0)
        return {
            name: (
                calls - self._before.get(name, nothing)[0],
                ms - self._before.get(name, nothing)[1],
            )
            for name, (calls, ms) in after.items()
            if name not in ("info", "auth")
        }

    def leave(self) -> None:
        """Do nothing."""

    def _read(self) -> dict[str, tuple[float, float]]:
        """Return calls and time since the server's start. Source: redis.io, INFO."""
        counted = {}
        answer = self._store.run(self._store.launch.spec.probes["commands"])
        for line in answer.splitlines():
            name, _, values = line.partition(":")
            if name.startswith("cmdstat_"):
                numbers = dict(part.split("=") for part in values.split(","))
                calls, time_ms = float(numbers["calls"]), float(numbers["usec"]) / 1e3
                counted[name.removeprefix("cmdstat_")] = calls, time_ms
        return counted


StatementCounter = PostgresStatements | RedisCommands
COUNTERS: Mapping[str, Callable[[Instance], StatementCounter]] = {
    "postgres": PostgresStatements,
    "store_postgres": PostgresStatements,
    "store_redis": RedisCommands,
}
