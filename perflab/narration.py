"""A run told in lines: what runs, how long it will still take, live numbers."""

from __future__ import annotations

from perflab.trials.client import Pace
from perflab.trials.events import Event, LoadProgress, Note, RunBegun, TrialBegun, TrialDone


def minutes(seconds: float) -> str:
    """Return ``m:ss``."""
    return f"{int(seconds) // 60}:{int(seconds) % 60:02d}"


class Narrator:
    """Turns events into a standing line and lines that stay."""

    def __init__(self) -> None:
        self._pace = Pace()
        self._trial: TrialBegun | None = None

    def line(self, event: Event) -> tuple[str, bool]:
        """Return the text for an event, and whether it stays (empty: nothing to show)."""
        match event:
            case RunBegun():
                return f"run {event.run_id} on the {event.backend} backend", True
            case Note():
                return f"  {event.text}", True
            case TrialBegun():
                self._trial, self._pace = event, Pace()
                return self._standing("", 0.0), False
            case LoadProgress():
                live = self._live(event, self._pace.update(event.finished))
                return self._standing(f"live: {live}", event.seconds), False
            case TrialDone():
                return self._done(event), True
        return "", False

    def _standing(self, load: str, seconds: float) -> str:
        trial = self._trial
        if trial is None:
            return ""
        left_s = max(0.0, trial.left_s - seconds) if trial.left_s else 0.0
        left = f", {self._left(left_s)}" if left_s else ""
        block = f"block {trial.block}/{trial.blocks}"
        return f"  trial {trial.number}/{trial.of}, {block}: {trial.label}{left}  {load}"

    @staticmethod
    def _live(load: LoadProgress, rate: float) -> str:
        of = f"/{load.of}" if load.of >= 0 else ""
        parts = [f"{load.finished}{of} at {rate:.0f}/s"]
        parts += ["warming up"] if load.warming_up else []
        parts += [f"{load.failed} failed"] if load.failed else []
        parts += [f"{name} {ms:.3g} ms" for name, ms in load.percentiles_ms.items()]
        parts += [f"{name} {used:.1f} cores" for name, used in load.cores.items()]
        return ", ".join(parts)

    def _left(self, seconds: float) -> str:
        """Return how long the run will take, or at most: it may end once all is decided."""
        bound = "at most" if self._trial is not None and self._trial.at_most else "about"
        return f"{bound} {minutes(seconds)} left"

    def _done(self, event: TrialDone) -> str:
        trial, rate = self._trial, event.throughput_rps
        shown = f"{rate:.0f} requests/s" if rate is not None else "measured"
        if event.messages_per_s is not None:
            shown = f"{event.messages_per_s:.0f} messages/s"
        left = f"  ({self._left(event.left_s)})" if event.left_s else ""
        which = f"{trial.number}/{trial.of} {trial.label}" if trial else event.trial_id
        text = f"  {which}: {shown}"
        if event.state != "valid":
            reason = event.reasons[0].text.splitlines()[0] if event.reasons else ""
            text += f"  {event.state.upper()}: {reason}"
        return text + left
