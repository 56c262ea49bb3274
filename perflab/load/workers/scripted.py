"""The driver of scripted users; the failure of one ends no other."""

from __future__ import annotations

import asyncio
import importlib
import importlib.util
import json
import ssl
import sys
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from perflab.errors import ParameterError, not_installed
from perflab.host.processes import printed_aside
from perflab.load.clients.client import Client
from perflab.load.clients.exchange import Exchange, Prepared
from perflab.load.clients.outcome import AFTER, CODES, MEASURE, WARMUP, Failed
from perflab.load.clients.targets import Origin
from perflab.load.records.message_record import MessageRecorder
from perflab.load.records.names import TEMPLATE_NAMES, write_names
from perflab.load.users import User, actions
from perflab.load.workers.timer import Timer
from perflab.load.workload.arrivals import Scripted
from perflab.load.workload.request import Connections, Request
from perflab.paths import make_importable

if TYPE_CHECKING:
    from perflab.load.clients.websocket import OnClosed, OnMessage, WebSocket

OF_USERS = "perflab_script_"
STOP_TIMEOUT_S = 5.0
# The summary has a row for each name.
MOST_NAMES = 1_000
# How often open WebSockets are looked after.
POLL_EVERY_NS = 1_000_000_000
# The time, besides the time-out, that users have after the end to finish.
ENDING_S = 2.0
clock = time.monotonic_ns


def find(script: str) -> type[User]:
    """Return the User that ``FILE.py:Class`` or ``module:Class`` names, or raise ParameterError."""
    place, _, name = script.rpartition(":")
    if not place or not name:
        raise ParameterError("script", [f"'{script}' is not FILE.py:Class or module:Class"])
    try:
        # What a script prints must not get between the answers of a command.
        if place.endswith(".py"):
            # What looks a class's module up finds it, and no other module of that name is hidden.
            name_of_module = f"{OF_USERS}{Path(place).stem}"
            spec = importlib.util.spec_from_file_location(name_of_module, place)
            if spec is None or spec.loader is None:
                raise ImportError(f"cannot load {place}")
            module = importlib.util.module_from_spec(spec)
            sys.modules[name_of_module] = module
            with printed_aside():
                spec.loader.exec_module(module)
        else:
            make_importable()
            with printed_aside():
                module = importlib.import_module(place)
    except (Exception, SystemExit) as error:  # whatever the module raises is told to its user
        words = not_installed(error) or f"{type(error).__name__}: {error}"
        raise ParameterError("script", [f"{place}: {words}"]) from None
    kind = getattr(module, name, None)
    if not (isinstance(kind, type) and issubclass(kind, User)):
        raise ParameterError("script", [f"{place} has no class {name} that is a perflab User"])
    actions(kind)
    return kind


class ScriptedDriver:
    """Lets users of one class act until the time or their actions are used up."""

    def __init__(
        self,
        arrivals: Scripted,
        users: Sequence[int],
        client: Client,
        origin: Origin,
        life: Connections,
        timer: Timer,
        record: Callable[[Exchange], None],
        folder: Path,
        allowed: Sequence[str] = (),
        headers: Mapping[str, str] | None = None,
        tls: Callable[[], ssl.SSLContext] = ssl.create_default_context,
    ) -> None:
        self.in_flight = 0
        # Users of a load by time who did not get beyond ``on_start``.
        self.users_lost = 0
        self.origin = origin
        self.life = life
        self._allowed, self._tls, self._headers = allowed, tls, headers or {}
        self._sockets: set[WebSocket] = set()
        self.messages = MessageRecorder(folder)
        self._arrivals = arrivals
        self._client = client
        self._timer = timer
        self._record = record
        self._folder = folder
        self._names: dict[str, int] = {}
        self._failures: dict[str, str] = {}
        self._stopping = asyncio.Event()
        self._waiting: set[asyncio.Event] = set()
        self.began_ns = self._end_ns = self._measure_from_ns = 0
        # The actions left to each user; without a limit on actions, 1 until the user joins.
        self._left = dict.fromkeys(users, arrivals.actions or 1)
        kind = find(arrivals.script)
        self._choices = {kind: actions(kind)}
        self._users = [self._new_user(kind, number) for number in users]
        self._monitor: User | None = None
        # The monitor is one more user; the worker of user 0 has it.
        if arrivals.monitor and 0 in users:
            kind = find(arrivals.monitor)
            self._choices[kind] = actions(kind)
            self._monitor = self._new_user(kind, arrivals.users)
        self._nothing = Prepared(Request(), origin, life)

    def _new_user(self, kind: type[User], number: int) -> User:
        user = kind(number, self._arrivals.seed, self._arrivals.parameters)
        user.headers = {**self._headers, **user.headers}
        user.course.driver = self
        return user

    @property
    def unsent(self) -> int:
        """Return how many actions were not begun, or how many users never joined."""
        return sum(self._left.values())

    def stop(self) -> None:
        """Let no user begin another action."""
        self._stopping.set()
        for due in self._waiting:
            due.set()

    async def run(self, start_ns: int) -> None:
        """Let every user act; then close open WebSockets and write names and failures."""
        arrivals = self._arrivals
        self.began_ns = start_ns
        self._measure_from_ns = start_ns + round(arrivals.warmup_s * 1e9)
        length_s = arrivals.warmup_s + arrivals.duration_s
        self._end_ns = start_ns + round(length_s * 1e9)
        self._timer.at(self._end_ns, self.stop)
        join_ns = round(arrivals.join_s * 1e9)
        crowd = [
            asyncio.create_task(self._life(user, start_ns + join_ns * user.number))
            for user in self._users
        ]
        lives = list(crowd)
        self._look_after_sockets()
        if self._monitor is not None:
            lives.append(asyncio.create_task(self._life(self._monitor, start_ns)))
        until_end_s = (self._end_ns - clock()) / 1e9
        try:
            # A script may wait for ever for a message that the server never sends.
            async with asyncio.timeout(until_end_s + self._client.timeout_s + ENDING_S):
                await asyncio.gather(*crowd)
                self.stop()
                await asyncio.gather(*lives)
        except TimeoutError:
            self.stop()
        finally:
            for life in lives:
                life.cancel()
            await asyncio.gather(*lives, return_exceptions=True)
            await asyncio.gather(
                *(opened.close() for opened in self._sockets), return_exceptions=True
            )
            self.stop()
            self.messages.close()
            (self._folder / "sockets.json").write_text(json.dumps(self._sockets_told()))
            write_names(self._folder, TEMPLATE_NAMES, self._names)
            (self._folder / "failures.txt").write_text("\n\n".join(self._failures.values()))

    def _look_after_sockets(self) -> None:
        """Find out while the load lasts that a server, or the way to it, is gone without a word."""
        for opened in self._sockets:
            opened.look_after(self._client.timeout_s)
        if not self._stopping.is_set():
            self._timer.at(clock() + POLL_EVERY_NS, self._look_after_sockets)

    def _sockets_told(self) -> list[tuple[float, float, bool]]:
        """Return of each WebSocket its last message and its end (s), and if that was answered."""
        return [
            (
                (opened.message_ns - self.began_ns) / 1e9,
                (opened.over_ns - self.began_ns) / 1e9,
                opened.is_answered,
            )
            for opened in self._sockets
        ]

    def now_ns(self) -> int:
        """Return the present instant, for users."""
        return clock()

    async def connect(
        self,
        path: str,
        on_message: OnMessage,
        on_closed: OnClosed,
        deflate: bool,
        headers: Mapping[str, str],
    ) -> WebSocket:
        """Open a WebSocket for a user; called by :class:`~perflab.load.users.User`."""
        from perflab.load.clients.websocket import connect

        scheme = "wss" if self.origin.encrypted else "ws"
        opened = await connect(
            f"{scheme}://{self.origin.authority}{path}",
            on_message,
            on_closed,
            deflate=deflate,
            timeout_s=self._client.timeout_s,
            headers=headers,
            allowed=self._allowed,
            tls=self._tls,
        )
        self._sockets.add(opened)
        return opened

    async def _life(self, user: User, joins_ns: int) -> None:
        if not await self.until(joins_ns):
            return
        if not self._arrivals.actions:
            self._left.pop(user.number, None)
        if type(user).on_start is User.on_start:
            # Without ``on_start`` the first wait begins at the very instant of joining.
            user.course.over_ns = joins_ns
        elif not await self._perform(user, joins_ns, user.on_start):
            # Those with a number of actions count as unsent.
            self.users_lost += not (self._arrivals.actions or self._stopping.is_set())
            return
        try:
            await self._act(user)
        except Exception as error:  # what a user says of its waits is the script's, too
            self._note_error(user, clock(), error, "a wait")
        user.course.due_ns, user.course.late_ns = clock(), 0
        await self._guarded(user, user.on_stop, STOP_TIMEOUT_S)

    async def _act(self, user: User) -> None:
        """Let a user act until its actions or the time are used up, and stay as long as it will."""
        left = self._left
        names, weights = self._choices[type(user)]
        course = user.course
        due_ns = course.over_ns
        first_ns = user.first_due_ns()
        while left.get(user.number, 1) and not self._stopping.is_set():
            if first_ns:
                due_ns, first_ns = max(first_ns, course.over_ns), 0
            elif user.pacing_s:
                due_ns = max(due_ns + round(user.pacing_s * 1e9), course.over_ns)
            else:
                due_ns = course.over_ns + round(user.wait() * 1e9)
            # A user whose next action is due after the end stays until the end.
            if not await self.until(min(due_ns, self._end_ns)) or due_ns >= self._end_ns:
                break
            if user.number in left:
                left[user.number] -= 1
            name = user.random.choices(names, weights)[0]
            await self._perform(user, due_ns, getattr(user, name))
            # An action that never waits must not keep the others from their turn.
            await asyncio.sleep(0)
        await self.until(user.leaves_ns())

    async def _perform(self, user: User, due_ns: int, step: Callable[[], Any]) -> bool:
        """Run a step that was due at an instant; note its end, less the client's lateness."""
        course = user.course
        course.due_ns, course.late_ns = due_ns, clock() - due_ns
        succeeded = await self._guarded(user, step)
        course.over_ns = clock() - course.late_ns
        return succeeded

    async def _guarded(
        self, user: User, step: Callable[[], Any], timeout_s: float | None = None
    ) -> bool:
        """Run a step of a user's script; a failure is recorded and ends nothing else."""
        began_ns = user.course.due_ns
        try:
            async with asyncio.timeout(timeout_s):
                await step()
        except Exception as error:  # the script is the user's: whatever it raises is an outcome
            self._note_error(user, began_ns, error, getattr(step, "__name__", "a step"))
            return False
        except asyncio.CancelledError:
            self.note_failure(user, began_ns, "aborted")
            raise
        return True

    def _note_error(self, user: User, began_ns: int, error: Exception, step: str) -> None:
        """Record an exception of a script."""
        kind = f"{type(error).__name__} in {step}"
        self._failures.setdefault(kind, traceback.format_exc())
        # The error class is ``script`` unless the exception names the server's.
        error_class = error.kind if isinstance(error, Failed) else "script"
        self._client.first_errors.note(error_class, f"{kind}: {not_installed(error) or error}")
        self.note_failure(user, began_ns, error_class)

    def note_failure(self, user: User, began_ns: int, kind: str, name: str = "script") -> None:
        """Record a failure that belongs to no request."""
        exchange = Exchange(self._nothing, user.number, lambda _: None)
        exchange.planned_ns = exchange.started_ns = began_ns
        exchange.done_ns = clock()
        exchange.error = CODES[kind]
        exchange.stage = self._stage(began_ns)
        exchange.template = self._names.setdefault(name, len(self._names))
        self._record(exchange)

    async def until(self, due_ns: int) -> bool:
        """Wait for an instant; return whether it came before the load was stopped."""
        is_due = due_ns <= clock()
        if self._stopping.is_set():
            # A script that pauses again and again must leave all others their turns.
            await asyncio.sleep(0)
            return False
        if is_due:
            return True
        due = asyncio.Event()
        self._timer.at(due_ns, due.set)
        self._waiting.add(due)
        try:
            await due.wait()
        finally:
            self._waiting.discard(due)
        return not self._stopping.is_set()

    def _stage(self, planned_ns: int) -> int:
        return WARMUP if planned_ns < self._measure_from_ns else MEASURE

    def send(self, exchange: Exchange, name: str, planned_ns: int) -> None:
        """Send a user's request; called by :class:`~perflab.load.users.User`."""
        if name not in self._names and len(self._names) >= MOST_NAMES:
            raise ValueError(
                f"more than {MOST_NAMES:,} names of requests, such as '{name}': give those that "
                "differ in a number one name, like name='item'"
            )
        exchange.template = self._names.setdefault(name, len(self._names))
        exchange.planned_ns = planned_ns
        exchange.stage = AFTER if self._stopping.is_set() else self._stage(planned_ns)
        self.in_flight += 1
        exchange.started_ns = clock()
        self._client.submit(exchange)

    def ended(self, exchange: Exchange) -> None:
        """Record a user's request that is done (or was given up)."""
        self.in_flight -= 1
        if not exchange.done_ns:
            exchange.done_ns = clock()
            exchange.error = CODES["aborted"]
        self._record(exchange)
