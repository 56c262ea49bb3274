"""Addresses of stores: what may stand in them, how they are opened, and how a fault is told."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from perflab.errors import PerflabError, StoreError

S3 = "s3://"
# Where a store of S3 is, and who asks for it: botocore's own variables.
VARIABLES = (
    "AWS_ENDPOINT_URL", "AWS_DEFAULT_REGION", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY",
)  # fmt: skip
AGAIN = ", then go on with --resume --retry"


def absolute(url: str) -> str:
    """Return an address that means the same on every host: a path from the root."""
    return url if "://" in url else str(Path(url).absolute())


def check_address(url: str) -> None:
    """Refuse an address that holds more than a place.

    Raises
    ------
    StoreError
        There is a key in it, or what else would stand in journals and lists of processes. It does
        not repeat the address.
    """
    if url.startswith(S3):
        if "@" in url or "?" in url or not url.removeprefix(S3).partition("/")[0]:
            raise StoreError(
                f"{S3}...: an address of S3 is {S3}bucket/place and nothing else; give endpoint, "
                f"region and keys by the environment ({', '.join(VARIABLES)})"
            )
    elif re.search(r"://[^/]*:.*@", url):
        raise StoreError(
            f"{url.partition(':')[0]}://...: a password in an address would stand in journals and "
            "lists of processes; give it by fsspec's configuration (FSSPEC_... in the environment)"
        )


def opened(url: str) -> tuple[Any, str]:
    """Return fsspec's file system of an address, and the place in it.

    Raises
    ------
    StoreError
        What opens it is not installed.
    """
    try:
        import fsspec

        # Not one that is kept: keys in the environment may be others by now.
        system, root = fsspec.core.url_to_fs(url, skip_instance_cache=True)
    except ImportError as error:
        raise StoreError(
            f"{url}: {error}; run 'make setup', or install 'perflab[cluster]'"
        ) from error
    return system, str(root).rstrip("/")


@contextmanager
def explained(url: str, kept: str, again: str = AGAIN) -> Iterator[None]:
    """Turn what a store raises into an error that says what is safe and what to do.

    Parameters
    ----------
    kept : str
        What is safe, or what has not been done.
    again : str
        What to do once the store can be used.
    """
    try:
        yield
    except PerflabError:
        raise
    # fsspec hands on what each store's own client raises: botocore's errors are no OSError.
    except Exception as error:
        why = getattr(error, "strerror", None) or str(error) or type(error).__name__
        check = "check its address and who may write there"
        if url.startswith(S3):
            check = f"make the bucket if there is none, and check {', '.join(VARIABLES)}"
        raise StoreError(
            f"{url}: the store cannot be used ({' '.join(why.split())}); {kept}. Way out: "
            f"{check}{again}"
        ) from error
