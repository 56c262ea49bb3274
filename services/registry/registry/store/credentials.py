"""Who the service is to the store: never printed, and kept by no record."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field

from registry.settings import Settings

# The stack's own store knows this one user; its password is the stack's.
OWN_USER = "perflab"
REGION = "us-east-1"
GIVEN = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")


@dataclass(frozen=True)
class Endpoint:
    """Where a store is and how to sign requests to it."""

    url: str
    user: str
    secret: str = field(repr=False)
    session_token: str | None = field(default=None, repr=False)

    def client_options(self) -> dict[str, str | None]:
        """Return what boto3 and aiobotocore call these."""
        return {
            "endpoint_url": self.url,
            "aws_access_key_id": self.user,
            "aws_secret_access_key": self.secret,
            "aws_session_token": self.session_token,
            "region_name": os.environ.get("AWS_REGION", REGION),
        }


def store_endpoint(settings: Settings, env: Mapping[str, str] = os.environ) -> Endpoint:
    """Return the object store's; raise ValueError where its credentials are missing."""
    return _endpoint(settings, settings.store_url, settings.store_address, env)


def database_endpoint(settings: Settings, env: Mapping[str, str] = os.environ) -> Endpoint:
    """Return the database's; raise ValueError where its credentials are missing."""
    return _endpoint(settings, settings.database_url, settings.database_address, env)


def _endpoint(settings: Settings, given: str, own: str, env: Mapping[str, str]) -> Endpoint:
    if not given:
        return Endpoint(own, OWN_USER, settings.secret_file.read_text().strip())
    user, secret, session_token = (env.get(name) for name in GIVEN)
    if not user or not secret:
        raise ValueError(
            f"{given} wants credentials: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY in the "
            "environment"
        )
    return Endpoint(given, user, secret, session_token or None)
