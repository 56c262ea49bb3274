"""Standard streams that are closed, full, or cannot show every letter."""

from __future__ import annotations

import contextlib
import errno
import io
import os
import sys
from collections.abc import Iterator

from perflab.errors import PerflabError

PLACE_ERRORS = (
    errno.EACCES, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.ENOSPC, errno.EPERM, errno.EPIPE,
    errno.EROFS,
)  # fmt: skip


class OutputFailed(PerflabError):
    """What the user was to read, or a file, cannot be written."""


@contextlib.contextmanager
def usable() -> Iterator[None]:
    """Check the standard streams before the block, and see that all of it was written after it.

    Raises
    ------
    OutputFailed
        Standard output is closed (then the block is not begun), or it or a file cannot be written.
    """
    closed = _fill_closed()
    if 1 in closed:
        raise OutputFailed(
            "standard output is closed, so nothing was started; send it to a file or to /dev/null"
        )
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A letter that the terminal's encoding lacks is shown as '?'.
            stream.reconfigure(errors="replace")
    try:
        try:
            yield
        finally:
            sys.stdout.flush()
    except OSError as error:
        if error.errno not in PLACE_ERRORS:
            raise
        # Else what is left of standard output is tried, and fails, once more.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        if isinstance(error, BrokenPipeError):
            sys.exit(1)  # the reader has seen enough, as in `perflab runs | head`
        what = error.filename or "what was to be shown or recorded cannot be written"
        raise OutputFailed(f"{what}: {error.strerror or error}") from None


def _fill_closed() -> set[int]:
    """Put /dev/null in the place of closed standard streams; return their numbers.

    Otherwise the next file that is opened would take the number, and children would write to it.
    """
    closed = set()
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
            os.set_inheritable(number, True)
            closed.add(number)
    if sys.stderr is None:
        sys.stderr = open(2, "w", closefd=False)  # noqa: SIM115
    return closed
