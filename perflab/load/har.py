"""Requests that a browser recorded (HAR 1.2), read as a load's: checked, bounded, without secrets.

http://www.softwareishard.com/blog/har-12-spec/ has the format. Only what a server must see again is
kept of an entry: method, address, headers, body, and the status that it answered with.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

from pydantic import ValidationError

from perflab.errors import ParameterError, TargetRefused
from perflab.load.har_parts import body_text, headers_sent
from perflab.load.request import Request
from perflab.load.targets import Origin, refuse_foreign, split

MOST_FILE_BYTES = 128 * 1024 * 1024
MOST_REQUESTS = 5_000
MOST_BODY_BYTES = 16 * 1024 * 1024
LONGEST_PAUSE_S = 600.0
MOST_PROBLEMS = 5


@dataclass(frozen=True)
class Recorded:
    """One request of a HAR; ``pause_s`` lay between the end of the one before and its begin."""

    origin: Origin
    request: Request
    pause_s: float = 0.0


@dataclass(frozen=True)
class Choice:
    """What is taken of a HAR: addresses that match, pauses, secrets, and where it goes.

    With ``sha256`` a file that was changed since is refused.
    """

    file: str
    matching: str = ""
    pauses: bool = False
    keep_secrets: bool = False
    to: str = ""
    sha256: str = ""


@dataclass(frozen=True)
class Recording:
    """The requests of a HAR in their order, and how many entries sent none."""

    requests: tuple[Recorded, ...]
    left_out: int

    @property
    def origins(self) -> list[Origin]:
        """Return where the requests go."""
        return list(dict.fromkeys(each.origin for each in self.requests))

    def name_of(self, each: Recorded) -> str:
        """Return the name under which a request is recorded: no query, which may hold secrets."""
        path = each.request.path.partition("?")[0]
        host = each.origin.authority if len(self.origins) > 1 else ""
        return f"{each.request.method} {host}{path}"

    def refuse_foreign(self, allowed: Sequence[str]) -> None:
        """Refuse hosts that are neither loopback nor allowed, all of them at once.

        Raises
        ------
        TargetRefused
            Before anything is sent.
        """
        refused = []
        for origin in self.origins:
            try:
                refuse_foreign(f"{origin.scheme}://{origin.authority}/", allowed)
            except TargetRefused:
                refused.append(origin.host)
        if refused:
            hosts = list(dict.fromkeys(refused))
            raise TargetRefused(
                f"the HAR's requests go to {', '.join(hosts)}, which are not targets of this run. "
                "Name an address of your own to send them there (perflab load --har FILE "
                "http://127.0.0.1:8000), leave hosts out with --har-filter, or name those that are "
                "yours to load: " + " ".join(f"--allow-target {host}" for host in hosts)
            )


def read(choice: Choice) -> Recording:
    """Read a HAR.

    Raises
    ------
    ParameterError
        It cannot be read, is none, is too large, or has an entry that is no request; nothing of it
        is left out in silence.
    """
    entries = _entries(Path(choice.file), choice.sha256)
    try:
        wanted = re.compile(choice.matching)
    except re.error as error:
        raise ParameterError("HAR", [f"--har-filter '{choice.matching}': {error}"]) from None
    found: list[Recorded] = []
    problems: list[str] = []
    ended_s: float | None = None
    left_out = taken = 0
    for number, entry in enumerate(entries, 1):
        try:
            if not _was_sent(entry) or not wanted.search(str(_request(entry).get("url"))):
                left_out += 1
                continue
            began_s, end_s = _times_s(entry) if choice.pauses else (0.0, 0.0)
            pause_s = 0.0 if ended_s is None else min(LONGEST_PAUSE_S, max(0.0, began_s - ended_s))
            ended_s = end_s
            found.append(_recorded(entry, choice, pause_s))
        except ValidationError as error:
            problems.append(f"entry {number}: {error.errors()[0]['msg']}")
        except (TargetRefused, ValueError) as error:
            problems.append(f"entry {number}: {error}")
        else:
            taken += len(str(found[-1].request.body))
        if len(found) > MOST_REQUESTS or taken > MOST_BODY_BYTES:
            problems.append(
                f"more than {MOST_REQUESTS} requests, or {MOST_BODY_BYTES >> 20} MiB of bodies; "
                "take fewer with --har-filter"
            )
        if len(problems) == MOST_PROBLEMS or len(found) > MOST_REQUESTS or taken > MOST_BODY_BYTES:
            break
    if not found and not problems:
        problems.append(f"none of its {len(entries)} entries is a request that is to be sent")
    if problems:
        raise ParameterError(f"HAR {choice.file}", problems)
    return Recording(tuple(found), left_out)


def _entries(file: Path, sha256: str) -> list[Any]:
    what = f"HAR {file}"
    try:
        if not file.is_file():
            raise ParameterError(what, ["no such file"])
        if file.stat().st_size > MOST_FILE_BYTES:
            raise ParameterError(what, [f"it has more than {MOST_FILE_BYTES >> 20} MiB"])
        content = file.read_bytes()
        if sha256 and hashlib.sha256(content).hexdigest() != sha256:
            raise ParameterError(what, ["it was changed since the load was planned"])
        found = json.loads(content.decode("utf-8-sig"))
    except OSError as error:
        raise ParameterError(what, [error.strerror or str(error)]) from None
    except (ValueError, RecursionError) as error:
        raise ParameterError(what, [f"it is not JSON ({error})"]) from None
    log = found.get("log") if isinstance(found, dict) else None
    entries = log.get("entries") if isinstance(log, dict) else None
    if not isinstance(entries, list):
        raise ParameterError(what, ["it has no list log.entries, as a HAR has"])
    return entries


def _request(entry: Any) -> Mapping[str, Any]:
    request = entry.get("request") if isinstance(entry, dict) else None
    if not isinstance(request, dict):
        raise ValueError("it has no request")
    return request


def _was_sent(entry: Any) -> bool:
    """Tell whether an entry is a request that went to a server over HTTP."""
    url = str(_request(entry).get("url"))
    of_cache = bool(entry.get("_fromCache"))
    is_socket = entry.get("_resourceType") == "websocket"
    return url.lower().startswith(("http://", "https://")) and not (of_cache or is_socket)


def _times_s(entry: Any) -> tuple[float, float]:
    """Return begin and end of an entry, in seconds of its own clock."""
    try:
        began_s = datetime.fromisoformat(str(entry.get("startedDateTime"))).timestamp()
        lasted_s = float(entry.get("time") or 0) / 1000
    except (TypeError, ValueError, OverflowError, OSError):
        raise ValueError("startedDateTime and time are none; leave --har-pauses away") from None
    if not 0 <= lasted_s < 1e9:
        raise ValueError(f"its time of {lasted_s:g} s is none; leave --har-pauses away")
    return began_s, began_s + lasted_s


def _recorded(entry: Any, choice: Choice, pause_s: float) -> Recorded:
    request = _request(entry)
    # A browser shows some letters as they are, and sends them encoded.
    url = quote(str(request.get("url")).partition("#")[0], safe="!$%&'()*+,/:;=?@[]~#-._")
    origin, path = split(url)
    if choice.to:
        origin, _ = split(choice.to)
    body = body_text(request.get("postData"))
    response = entry.get("response")
    status = response.get("status") if isinstance(response, dict) else 0
    is_status = isinstance(status, int) and 200 <= status <= 599
    words = {
        "method": str(request.get("method")),
        "path": path,
        "headers": headers_sent(request, choice.keep_secrets),
        "body": body,
        # What was not answered when it was recorded may be answered in any way.
        "expect_status": status if is_status else 0,
    }
    made = Request.model_validate(words)
    if made.method == "CONNECT":
        raise ValueError("CONNECT is no request of a load")
    return Recorded(origin, made, pause_s)
