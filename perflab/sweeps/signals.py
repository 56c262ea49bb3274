"""Signals that ask a sweep to end: the notebook under way is interrupted, and ends in order."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator

import psutil

ASK_TO_END = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
# In the command of every kernel of IPython.
KERNEL = "ipykernel_launcher"


class AskedToEnd:
    """Whether this process was asked to end: ``by`` is the first signal's name, or empty."""

    def __init__(self) -> None:
        self.by = ""
        self._times = 0

    def ask(self, by: str) -> None:
        """Interrupt the kernel under way: its run ends in order, and its notebook tells of that.

        KeyboardInterrupt where there is no kernel, and the second time: somebody does not want to
        wait. Later signals are not heard, so that what ends is not disturbed.
        """
        self.by = self.by or by
        self._times += 1
        if (self._times == 1 and not interrupt_kernels()) or self._times == 2:
            raise KeyboardInterrupt(by)

    def ask_again(self) -> None:
        """Interrupt once more: a kernel that was between two cells does not notice the first."""
        if self.by:
            interrupt_kernels()


def interrupt_kernels() -> int:
    """Send SIGINT to the kernels that this process started, and return how many there are."""
    found = 0
    for child in psutil.Process().children():
        with contextlib.suppress(psutil.Error):
            if KERNEL in child.cmdline():
                child.send_signal(signal.SIGINT)
                found += 1
    return found


@contextlib.contextmanager
def heard() -> Iterator[AskedToEnd]:
    """Hear SIGINT, SIGTERM and SIGHUP while the block runs.

    A signal that is ignored (``nohup``) stays so. Only the main thread receives signals: in another
    one nothing changes.
    """
    asked = AskedToEnd()
    if threading.current_thread() is not threading.main_thread():
        yield asked
        return

    def take(number: int, _frame: object) -> None:
        asked.ask(signal.Signals(number).name)

    taken = [each for each in ASK_TO_END if signal.getsignal(each) is not signal.SIG_IGN]
    before = {each: signal.signal(each, take) for each in taken}
    try:
        yield asked
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
