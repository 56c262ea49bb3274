"""Errors for the user: each says what was wrong, where, and what to do next.

PerflabError is the base of all. Three errors have subclasses: StackError (services), RecordingError
(recordings) and ClusterError (several hosts).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from perflab.credentials import masked

# What packages that may not be installed belong to.
EXTRAS = {
    **dict.fromkeys(
        ("ipykernel", "jupyter_client", "nbformat", "papermill", "prometheus_client", "yaml"), "lab"
    ),
    **dict.fromkeys(("msgpack", "msgspec", "picows"), "studies"),
    **dict.fromkeys(("dask", "distributed"), "cluster"),
}


def not_installed(error: BaseException) -> str:
    """Return which package of an extra is missing, with the way out; empty for other errors."""
    if not isinstance(error, ModuleNotFoundError):
        return ""
    package = (error.name or "").partition(".")[0]
    if package not in EXTRAS:
        return ""
    return f"{package} is not installed: pip install 'perflab[{EXTRAS[package]}]'"


def cause(error: Exception) -> str:
    """Return why a file cannot be read, without number and path: who calls names the file."""
    return (error.strerror if isinstance(error, OSError) else "") or str(error)


class PerflabError(Exception):
    """Base of every error meant for the user; its text is complete without a traceback.

    Credentials are masked in it, also those that a service's log or answer has repeated.
    """

    def __init__(self, *words: object) -> None:
        super().__init__(*(masked(word) if isinstance(word, str) else word for word in words))

    def _render_traceback_(self) -> list[str]:
        # IPython calls this; a notebook shows the text alone, without the frames of the lab.
        return [f"{type(self).__name__}: {self}"]

    def __reduce__(self) -> tuple[Any, ...]:
        # Errors cross processes, and subclasses are made from other arguments than their text.
        return type(self).__new__, (type(self), *self.args), self.__dict__


class ParameterError(PerflabError):
    """Every problem found in a set of parameters, at once."""

    def __init__(self, subject: str, problems: Sequence[str]) -> None:
        self.problems = tuple(problems)
        listed = "\n".join(f"  - {problem}" for problem in self.problems)
        super().__init__(f"{subject}: nothing was started, because of\n{listed}")


class ExperimentError(PerflabError):
    """An experiment's module cannot be used: which file, and what is wrong with it."""


class StackError(PerflabError):
    """A stack of services failed."""


class BackendUnavailable(StackError):
    """The chosen backend does not answer on this machine."""


class MachineShort(StackError):
    """This machine lacks ports, files, memory or rights; no service is at fault."""


class ImageError(StackError):
    """An image cannot be built or found."""


class HookFailed(StackError):
    """A service could not be seeded, reset, counted or brought to rest; the text has its answer."""


def last_lines(log: str) -> str:
    """Return the last 30 lines of a service's log, as they stand below what went wrong."""
    lines = log.strip().splitlines()[-30:]
    last = "\n".join(f"  | {line}" for line in lines) or "  | (no output)"
    return f"its last log lines:\n{last}"


class ServiceFailed(StackError):
    """A service, named as in the stack, died or never became healthy for this ``reason``."""

    def __init__(self, service: str, reason: str, log: str = "") -> None:
        self.reason = reason
        super().__init__(f"service '{service}': {reason}\n{last_lines(log)}")


class SettingRefused(StackError):
    """A service reports another value for a setting than the treatment asks for."""


class ProfilerFailed(StackError):
    """The profiler is missing, has no permission, or wrote nothing."""


class HostBusy(PerflabError):
    """Another measurement holds the lock of this host."""


class UnsafePlace(PerflabError):
    """A folder or file of the lab was made by another user, or can be changed by one."""


class LoadError(PerflabError):
    """The load generator itself failed; the trial is void."""


class InstrumentFailed(PerflabError):
    """An instrument raised an exception; the trial is void."""


class WrongAnswer(PerflabError):
    """A variant gives another answer than expected; a fresh start would not change that."""


class TargetRefused(PerflabError):
    """The target of a load is neither this machine nor a host that was allowed by name."""


class RecordingError(PerflabError):
    """A recording cannot be read or written."""


class RowsMissing(RecordingError):
    """A recording lacks the rows of requests or messages that its trials counted."""


class RunNotFound(RecordingError):
    """No run, or more than one, has that name."""


class ResumeRefused(RecordingError):
    """The run cannot be continued: code or machine changed since it began."""


class AnalysisError(PerflabError):
    """A recording cannot answer the question."""


class RunInterrupted(PerflabError):
    """The user ended the run; committed trials are kept."""


class ConductorLost(PerflabError):
    """The process that runs the trials died before the run was finished."""


class NotebookFailed(PerflabError):
    """A cell of a notebook raised, or its kernel died: class, text and traceback of the error.

    ``run_id`` is the run that the notebook made or went on with, if there is one.
    """

    run_id = ""

    def __init__(self, name: str, kind: str, text: str, log: str = "") -> None:
        self.kind = kind
        self.text = text
        self.log = log
        super().__init__(f"notebook '{name}': {kind}: {text}")


class ClusterError(PerflabError):
    """The workers cannot carry out the sweep."""


class HostsDiffer(ClusterError):
    """Hosts differ in something that must be equal on all of them."""


class FolderError(PerflabError):
    """Runs cannot be copied to or from the folder of results; they are still where they were."""


class ImportRefused(PerflabError):
    """A file of another load tool cannot be imported; the text names file, line and reason."""


class ExportRefused(PerflabError):
    """A section or figure cannot be written; the file in its place was not changed."""
