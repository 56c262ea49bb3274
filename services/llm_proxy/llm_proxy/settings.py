"""Settings of the proxy, and where its upstream is."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

from specimen.settings import content

KEY = "LLM_API_KEY"


@dataclass(frozen=True)
class Settings:
    """What the proxy was started with; service.toml says what each means.

    ``upstream_address`` is the stack's own upstream, whose key is in ``secret_file``;
    ``upstream_url`` takes its place where it is given, with the key in ``credentials_file``, a JSON
    object of the user's variables.
    """

    host: str = "127.0.0.1"
    port: int = 8000
    upstream_address: str = ""
    secret_file: Path = Path()
    credentials_file: Path = Path()
    mode: Literal["rebuild", "pass", "raw"] = "rebuild"
    upstream_url: str = ""
    read_timeout_s: float = 60.0


@dataclass(frozen=True)
class Endpoint:
    """Where the upstream is, and the key that it wants: never printed, and kept by no record."""

    url: str
    key: str = field(repr=False)


def endpoint(settings: Settings) -> Endpoint:
    """Return the upstream's address and key; one of the user's own may want no key, as Ollama's.

    A ValueError says that ``upstream_url`` is no address; it does not repeat one that holds a key.
    """
    if not settings.upstream_url:
        return Endpoint(settings.upstream_address, content(settings.secret_file))
    parts = urlsplit(settings.upstream_url)
    if parts.username is not None or parts.password is not None or parts.query:
        raise ValueError(f"upstream_url has a user name, password or query; set {KEY} instead")
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError(f"upstream_url = {settings.upstream_url!r} must be an http(s) address")
    known = json.loads(content(settings.credentials_file) or "{}")
    return Endpoint(settings.upstream_url.rstrip("/"), known.get(KEY, ""))
