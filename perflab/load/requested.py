"""From the options of ``perflab load`` to its request and connections; problems are collected."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from perflab.load.life_cycle import WORDS
from perflab.load.options import Options
from perflab.load.payload import FileBody, Payload, checksum


def connections(options: Options) -> dict[str, float]:
    """Return the life cycle of connections that options describe, as data."""
    word, requests = options.connection.replace("-", "_"), options.requests_per_connection
    if word not in WORDS:
        options.problems.append(
            f"--connection '{options.connection}' is not keep-alive or per-request"
        )
    elif word == "per_request" and requests:
        options.problems.append("give --connection per-request or --requests-per-connection")
    else:
        requests = requests or WORDS[word].get("requests", 0)
    return {
        "requests": requests,
        "idle_s": options.idle,
        "churn_per_s": options.churn,
        "churn_share": options.churn_share,
        "most": options.connections,
    }


def _body(options: Options) -> Payload:
    """Return the body: the text that was given, or the file."""
    if options.body_file:
        if options.body or options.data:
            options.problems.append("--body-file does not go with --body or --data")
        try:
            return FileBody.of(options.body_file)
        except ValidationError as error:
            options.problems.append(f"--body-file: {error.errors()[0]['ctx']['error']}")
    if not options.body.startswith("@"):
        return options.body
    try:
        return Path(options.body[1:]).read_text()
    except UnicodeDecodeError:
        options.problems.append(f"--body {options.body}: no text; --body-file sends any bytes")
    except OSError as error:
        options.problems.append(f"--body {options.body}: {error}")
    return ""


def _expected_body(options: Options) -> dict[str, Any]:
    """Return what the body of an answer must be; of a file, length and checksum of its content."""
    found: dict[str, Any] = {"expect_body": options.expect_body}
    if options.expect_bytes >= 0:
        found["expect_bytes"] = options.expect_bytes
    kind, _, value = options.expect_checksum.partition(":")
    if options.expect_checksum.startswith("@"):
        try:
            size, crc32 = checksum(Path(options.expect_checksum[1:]))
            return {"expect_bytes": size, **found, "expect_crc32": crc32}
        except OSError as error:
            options.problems.append(f"--expect-checksum {options.expect_checksum}: {error}")
    elif kind == "crc32" and re.fullmatch("[0-9a-fA-F]{1,8}", value):
        found["expect_crc32"] = int(value, 16)
    elif kind == "sha256" and re.fullmatch("[0-9a-fA-F]{64}", value):
        found["expect_sha256"] = value.lower()
    elif options.expect_checksum:
        options.problems.append(
            f"--expect-checksum '{options.expect_checksum}' is not like crc32:1c291ca3, "
            "sha256:(64 digits) or @FILE"
        )
    return found


def request(options: Options, path: str) -> dict[str, Any]:
    """Return the request that options describe, and what its answer must be, as data."""
    rows = _rows(options.data, options.problems) if options.data else []
    body = _body(options)
    headers = {}
    for text in options.headers:
        name, colon, value = text.partition(":")
        if not colon:
            options.problems.append(f"--header '{text}' is not 'Name: value'")
        headers[name.strip()] = value.strip()
    if rows and not body and "$" not in path + "".join(headers.values()):
        # Rows without a template are the bodies themselves.
        rows, body = [{"row": json.dumps(row)} for row in rows], "${row}"
    return {
        "method": (options.method or ("POST" if body else "GET")).upper(),
        "path": path,
        "headers": headers,
        "body": body,
        "data": rows,
        "expect_status": options.expect_status or 200,
        **_expected_body(options),
        "redirects": options.redirects,
        **_streamed(options),
    }


def _streamed(options: Options) -> dict[str, Any]:
    """Return what is expected of a streamed answer."""
    if not options.stream:
        for name in ("min_chunks", "end_marker"):
            if getattr(options, name):
                options.problems.append(
                    f"--{name.replace('_', '-')} needs --stream sse or --stream ndjson"
                )
        return {}
    return {
        "stream": options.stream,
        "min_chunks": options.min_chunks or 1,
        "end_marker": options.end_marker,
    }


def _rows(name: str, problems: list[str]) -> list[dict[str, Any]]:
    try:
        lines = Path(name).read_text().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        problems.append(f"--data {name}: {error}")
        return []
    rows = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except ValueError as error:
            problems.append(f"--data {name}, line {number}: not JSON ({error})")
            break
        if not isinstance(row, dict):
            problems.append(f"--data {name}, line {number}: not a JSON object")
            break
        rows.append(row)
    if not rows and not problems:
        problems.append(f"--data {name}: no rows")
    return rows
