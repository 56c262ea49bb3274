"""From the options of ``perflab load`` to its request and connections; problems are collected."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from perflab.errors import ParameterError
from perflab.load.life_cycle import WORDS
from perflab.load.options import Options
from perflab.load.payload import FileBody, Payload, checksum
from perflab.load.trust import Certificate

# A cookie's name and value (RFC 6265, 4.1.1); quotes around the value are part of it.
COOKIE = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+=[\x21\x23-\x2b\x2d-\x3a\x3c-\x5b\x5d-\x7e\"]*")


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
    if line := fixed_cookies(options):
        if any(name.lower() == "cookie" for name in headers):
            options.problems.append("give --cookie or --header 'Cookie: ...', not both")
        headers["Cookie"] = line
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


def transport(options: Options) -> dict[str, Any]:
    """Return what carries the requests: client, TLS, certificate and cookies, as data."""
    client = options.client
    if options.http2:
        if client not in ("lean", "http2"):
            options.problems.append(f"--http2 does not go with --client {client}")
        client = "http2"
    ca_file = _found("--ca-file", options.ca_file, options.problems)
    return {
        "client": client,
        "verify_tls": not options.insecure,
        "ca_file": ca_file,
        "certificate": _certificate(options),
        "cookies": options.cookies,
    }


def _found(option: str, name: str, problems: list[str]) -> str:
    """Return a file's whole path: the workers run elsewhere, a relative one would be another."""
    if name and not Path(name).is_file():
        problems.append(f"{option} {name}: no such file")
    return str(Path(name).resolve()) if name else ""


def _certificate(options: Options) -> dict[str, str] | None:
    if not options.cert:
        for name in ("key", "key_password_env"):
            if getattr(options, name):
                options.problems.append(f"--{name.replace('_', '-')} needs --cert")
        return None
    words = {
        "cert_file": str(Path(options.cert).resolve()),
        "key_file": str(Path(options.key).resolve()) if options.key else "",
        "password_env": options.key_password_env,
    }
    try:
        Certificate.model_validate(words).check()
    except ParameterError as error:
        options.problems.extend(error.problems)
    return words


def fixed_cookies(options: Options) -> str:
    """Return what ``--cookie name=value`` puts into every request's ``Cookie``."""
    for text in options.fixed_cookies:
        if not COOKIE.fullmatch(text):
            options.problems.append(f"--cookie '{text.partition('=')[0]}' is not like name=value")
    return "; ".join(options.fixed_cookies)
