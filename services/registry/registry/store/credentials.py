"""Who the service is to the store: never printed, and kept by no record."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from registry.settings import Settings

# The stack's own store knows this one user; its password is the stack's.
OWN_USER = "perflab"
GIVEN = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")


@dataclass(frozen=True)
class Endpoint:
    """Where a store is and how to sign requests to it."""

    url: str
    region: str
    user: str
    secret: str = field(repr=False)
    session_token: str | None = field(default=None, repr=False)

    def client_options(self) -> dict[str, str | None]:
        """Return what boto3 and aiobotocore call these."""
        return {
            "endpoint_url": self.url,
            "region_name": self.region,
            "aws_access_key_id": self.user,
            "aws_secret_access_key": self.secret,
            "aws_session_token": self.session_token,
        }


def store_endpoint(settings: Settings, env: Mapping[str, str] = os.environ) -> Endpoint:
    """Return the object store's; raise ValueError where its credentials are missing."""
    return _endpoint(settings, settings.store_url, settings.store_address, env)


def database_endpoint(settings: Settings, env: Mapping[str, str] = os.environ) -> Endpoint:
    """Return the database's; raise ValueError where its credentials are missing."""
    return _endpoint(settings, settings.database_url, settings.database_address, env)


def _endpoint(settings: Settings, given: str, own: str, env: Mapping[str, str]) -> Endpoint:
    if not given:
        secret = settings.secret_file.read_text().strip()
        return Endpoint(own, settings.region, OWN_USER, secret)
    known = _in_file(settings.credentials_file) | {name: env[name] for name in GIVEN if name in env}
    user, secret, session_token = (known.get(name, "") for name in GIVEN)
    if not user or not secret:
        raise ValueError(
            f"{given} wants credentials: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY in the "
            "environment"
        )
    return Endpoint(given, settings.region, user, secret, session_token or None)


def _in_file(path: Path) -> dict[str, str]:
    return dict(json.loads(path.read_text())) if path.is_file() else {}
