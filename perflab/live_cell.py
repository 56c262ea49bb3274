"""Live progress below a notebook's cell: one changing output, of which only plain lines stay.

While a trial runs, its numbers so far stand there as a table, said to be live. When the run ends,
in order or not, they give way to the lines that stay: a saved notebook holds those alone.
"""

from __future__ import annotations

import time
from types import TracebackType
from typing import Any

from perflab.display import CELL, LINE, escaped
from perflab.narration import Narrator, minutes
from perflab.trials.client import Pace
from perflab.trials.events import Event, LoadProgress, TrialBegun, TrialDone

# Kernel and browser draw with the CPU of the machine that is being measured.
REDRAW_S = 1.0
MOST_LINES = 12
NOT_THE_RESULT = (
    "Live numbers of the trial under way, not a result: nothing has judged them yet. The stop "
    "button ends this trial in order and keeps those that are done."
)


class LiveCell:
    """Shows events below the cell that is running, while the block lasts.

    Parameters
    ----------
    redraw_s : float
        How often live numbers are drawn anew, at most; what stays is drawn at once.
    """

    def __init__(self, redraw_s: float = REDRAW_S) -> None:
        from IPython.display import DisplayHandle

        self._redraw_s = redraw_s
        self._drawn_at = 0.0
        self._narrator = Narrator()
        self._kept: list[str] = []
        self._trial: TrialBegun | None = None
        self._done = 0
        self._pace = Pace()
        new: Any = DisplayHandle
        self._handle = new()

    def __enter__(self) -> LiveCell:
        self._handle.display({"text/plain": ""}, raw=True)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Leave nothing but the lines that stay."""
        self._handle.update({"text/plain": self._lines()}, raw=True)

    def __call__(self, event: Event) -> None:
        """Show one event."""
        text, stays = self._narrator.line(event)
        if stays:
            self._kept.append(text)
        load, rate = None, 0.0
        match event:
            case TrialBegun():
                self._trial, self._pace = event, Pace()
            case TrialDone():
                self._done += 1
            case LoadProgress():
                load, rate = event, self._pace.update(event.finished)
        now = time.monotonic()
        if load is not None and now - self._drawn_at < self._redraw_s:
            return
        self._drawn_at = now
        shown = {"text/plain": "\n".join(filter(None, [self._lines(), "" if stays else text]))}
        if self._trial is not None:
            shown["text/html"] = live_html(self._trial, self._done, load, rate, self._lines())
        self._handle.update(shown, raw=True)

    def _lines(self) -> str:
        """Return the lines that stay: the first, which names the run, and the newest."""
        if len(self._kept) <= MOST_LINES:
            return "\n".join(self._kept)
        return "\n".join([self._kept[0], "  ...", *self._kept[2 - MOST_LINES :]])


def live_html(
    trial: TrialBegun, done: int, load: LoadProgress | None, rate: float, lines: str
) -> str:
    """Return how far a run is, and the numbers so far of its trial under way, as HTML.

    Parameters
    ----------
    done : int
        Trials that are done.
    rate : float
        Requests per second, lately.
    lines : str
        What stands below: the lines that stay.
    """
    share = _share(trial, done, load)
    left_s = (trial.left_s or 0.0) - (load.seconds if load else 0.0)
    bound = "at most" if trial.at_most else "about"
    left = f", {bound} {minutes(left_s)} left" if left_s > 0 else ""
    head = f"trial {trial.number} of {trial.of}, block {trial.block} of {trial.blocks}{left}"
    bar = (
        f'<div style="max-width: 40em; height: 6px; margin: 4px 0; {FAINT}">'
        f'<div style="width: {share:.1%}; height: 6px; background: #2a7ab0;"></div></div>'
    )
    note = f'<p style="opacity: 0.75; margin: 4px 0;">{NOT_THE_RESULT}</p>'
    return (
        f'<div><p style="margin: 4px 0;"><b>{escaped(head)}</b>: {escaped(trial.label)}</p>{bar}'
        f'{_numbers(load, rate)}{note}<pre style="margin: 4px 0;">{escaped(lines)}</pre></div>'
    )


FAINT = "background: rgba(128, 128, 128, 0.25);"


def _share(trial: TrialBegun, done: int, load: LoadProgress | None) -> float:
    within = load.finished / load.of if load is not None and load.of > 0 else 0.0
    return min(1.0, (max(done, trial.number - 1) + min(1.0, within)) / max(1, trial.of))


def _numbers(load: LoadProgress | None, rate: float) -> str:
    """Return the live numbers as a table of one row."""
    if load is None:
        return ""
    of = f" of {load.of:,}" if load.of >= 0 else ""
    cells = {"live": "warming up" if load.warming_up else "measuring"}
    cells["requests"] = f"{load.finished:,}{of}"
    cells["per second"] = f"{rate:,.0f}"
    cells |= {f"{name} so far": f"{ms:.3g} ms" for name, ms in load.percentiles_ms.items()}
    if load.failed:
        cells["failed"] = f"{load.failed:,}"
    cells |= {f"{name}, cores": f"{used:.2f}" for name, used in load.cores.items()}
    style = f"text-align: right; border-bottom: {LINE}; {CELL}"
    head = "".join(f'<th style="{style}">{escaped(name)}</th>' for name in cells)
    row = "".join(f'<td style="{style}">{escaped(text)}</td>' for text in cells.values())
    return (
        '<table style="border-collapse: collapse; margin: 4px 0;">'
        f"<tr>{head}</tr><tr>{row}</tr></table>"
    )
