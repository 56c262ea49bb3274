"""Errors for the reader: what was wrong, where, and what to do next.

PerflabError is the base of all. Below it three have kinds of their own: StackError (what services
cannot do), RecordingError (what cannot be read or written) and ClusterError (several hosts).
"""

from __future__ import annotations

from collections.abc import Sequence


class PerflabError(Exception):
    """Base of every error meant for the user; its text is complete without a traceback."""

    def _render_traceback_(self) -> list[str]:
        # IPython asks for this. In a notebook the text shall stand where it is seen, not below
        # the frames of the lab.
        return [f"{type(self).__name__}: {self}"]


class ParameterError(PerflabError):
    """Every problem found in a set of parameters, at once."""

    def __init__(self, subject: str, problems: Sequence[str]) -> None:
        self.subject = subject
        self.problems = tuple(problems)
        listed = "\n".join(f"  - {problem}" for problem in self.problems)
        super().__init__(f"{subject}: nothing was started, because of\n{listed}")


class ExperimentError(PerflabError):
    """An experiment's module cannot be used: which file, and what is wrong with it."""


class StackError(PerflabError):
    """A stack of services cannot do what was asked of it."""


class BackendUnavailable(StackError):
    """The wanted backend does not answer on this machine."""


class ImageError(StackError):
    """An image cannot be built or found."""


class HookFailed(StackError):
    """A node could not be seeded, reset or counted: which, and what was answered."""


class ServiceFailed(StackError):
    """A service (its name in the stack) died or never became healthy; ``log`` is what it wrote."""

    def __init__(self, service: str, reason: str, log: str = "") -> None:
        self.service = service
        self.reason = reason
        self.log = log
        last = "\n".join(f"  | {line}" for line in log.strip().splitlines()) or "  | (no output)"
        super().__init__(f"service '{service}': {reason}\nits last log lines:\n{last}")


class SettingRefused(StackError):
    """A service reports another value for a setting than the treatment asks for."""


class ProfilerFailed(StackError):
    """The profiler is missing, may not look at the service, or left nothing."""


class HostBusy(PerflabError):
    """Another measurement holds the lock of this host; ``who`` names it."""

    def __init__(self, text: str, who: str = "") -> None:
        self.who = who
        super().__init__(text)


class UnsafePlace(PerflabError):
    """A folder or file of the lab's that somebody else made or can change."""


class LoadError(PerflabError):
    """The load generator itself failed; the trial is void."""


class InstrumentFailed(PerflabError):
    """What looks at a trial raised an exception of its own; the trial is void."""


class WrongAnswer(PerflabError):
    """A variant answers otherwise than it was said to: to start it afresh would not mend that."""


class TargetRefused(PerflabError):
    """Load was asked for a host that is neither the lab's own nor allowed by name."""


class RecordingError(PerflabError):
    """A recording cannot be read or written."""


class RowsMissing(RecordingError):
    """A recording lacks rows, of requests or messages, of which the rows of its trials tell."""


class RunNotFound(RecordingError):
    """No run answers to that name."""


class ResumeRefused(RecordingError):
    """The run cannot be continued: code or machine changed since it began."""


class AnalysisError(PerflabError):
    """A question that this recording cannot answer."""


class RunInterrupted(PerflabError):
    """The run was ended by the user; what was committed is kept."""


class ConductorLost(PerflabError):
    """The process that runs the trials died before the run was finished."""


class NotebookFailed(PerflabError):
    """A cell of a notebook raised, or its kernel died: class, text and traceback of the error."""

    def __init__(self, name: str, kind: str, text: str, log: str = "") -> None:
        self.kind = kind
        self.text = text
        self.log = log
        super().__init__(f"notebook '{name}': {kind}: {text}")


class UnknownEvent(PerflabError):
    """A run tells what this side does not understand: the two are of different versions."""


class ClusterError(PerflabError):
    """A sweep cannot be carried out by the workers that there are."""


class HostsDiffer(ClusterError):
    """Hosts differ in what must be equal on all of them: which one, and in what."""


class StoreError(PerflabError):
    """Runs cannot be copied to a place or from it; they are still where they were."""


class ImportRefused(PerflabError):
    """A file of another load tool cannot be taken over: which file, which line, and why."""


class ExportRefused(PerflabError):
    """A section cannot be put where it was asked for; what is there was not changed."""
