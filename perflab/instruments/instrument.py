"""What an instrument is: begun before and ended after a load, it gives columns, tables, reasons.

An :class:`Instrument` is a description: its fields are its settings, it is checked before anything
starts, and it goes to the process that measures as JSON. For every trial it makes a :class:`Look`,
which does the work.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import pandas as pd
from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    SerializeAsAny,
    SerializerFunctionWrapHandler,
    model_serializer,
)

from perflab.errors import ExperimentError, LoadError
from perflab.host.meters import Meter
from perflab.host.placing import Placement
from perflab.load.records.result import LoadResult
from perflab.load.workload import Workload
from perflab.recordings import Reason, Remark
from perflab.stacks.backend import Instance
from perflab.stacks.patience import Interrupted, never
from perflab.stacks.plan import StackPlan

if TYPE_CHECKING:
    from perflab.stacks.residents import Residents

KIND = "kind"
# Modules elsewhere are no instruments: a plan is data, and data shall not choose what is run.
BELOW = "perflab."


def _cannot_send(workload: Workload) -> LoadResult:  # noqa: ARG001
    raise LoadError("nothing here sends a load of an instrument's own")


@dataclass(frozen=True)
class Scene:
    """Where a look is taken: the services of a treatment, the load they get, and the machine.

    ``labels`` belong into the environment of whatever a look starts, so that clean-up finds it;
    ``client_pids`` are the processes that send the load; ``interrupted`` is asked by looks that
    take long: why the run is to end, or an empty string. ``send`` sends a load besides the trial's
    own, while no other is under way, and returns its record.
    """

    residents: Residents
    treatment: str
    workload: Workload
    placement: Placement
    labels: Mapping[str, str] = field(default_factory=dict)
    client_pids: Sequence[int] = ()
    interrupted: Interrupted = never
    send: Callable[[Workload], LoadResult] = _cannot_send

    def instance(self, node: str) -> Instance:
        """Return what serves a node of the stack."""
        return self.residents.instance(self.treatment, node)


@dataclass(frozen=True)
class Load:
    """A load that is over: what it left, and samples of the CPU and memory of ``services``.

    These are the nodes of the stack, the client and the lab, without what instruments have started.
    """

    result: LoadResult
    samples: pd.DataFrame
    services: tuple[str, ...]


@dataclass(frozen=True)
class Observation:
    """What a look has seen of a trial.

    ``columns`` go into the trial's row; ``tables`` are those that the instrument declares; with any
    of the ``reasons`` the trial is not used; ``warnings`` travel with its numbers.
    """

    columns: Mapping[str, Any] = field(default_factory=dict)
    tables: Mapping[str, pd.DataFrame] = field(default_factory=dict)
    reasons: Sequence[Reason] = ()
    warnings: Sequence[Remark] = ()


class Look:
    """One trial as an instrument sees it; each kind overrides what it needs.

    The steps come in the order in which they stand here. Where one raises an exception the trial
    has failed, and the run goes on; after a StackError the services are started afresh. WrongAnswer
    ends the run.
    """

    def before(self) -> None:
        """Measure with the services ready and idle, before the load."""

    def begin(self) -> None:
        """Begin to look; whoever raises here has nothing to end."""

    def meters(self) -> Mapping[str, Meter]:
        """Return, once begun, meters of processes of its own: their CPU is sampled like others."""
        return {}

    def end(self) -> None:
        """End the look; called whenever it was begun, also when the load has failed."""

    def after(self) -> None:
        """Measure with the services idle again, after the load."""

    def left(self) -> Mapping[str, pd.DataFrame]:
        """Return the tables of a trial that failed, as far as they came."""
        return {}

    def observe(self, load: Load) -> Observation:
        """Return what was seen."""
        raise NotImplementedError


class Instrument(BaseModel):
    """Something that looks at trials; a kind of instrument derives a class and adds its settings.

    ``tables`` declares what it leaves besides columns: the types of the columns, by table.
    ``shares_time`` says that what it sees is its own treatment's also where several are measured in
    the same stretch of time (:mod:`perflab.trials.designs`).
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    tables: ClassVar[Mapping[str, Mapping[str, str]]] = {}
    shares_time: ClassVar[bool] = False

    def look(self, scene: Scene) -> Look:  # noqa: ARG002
        """Return the look at one trial; by default one that calls ``observe`` and nothing else."""
        return _AtRecord(self)

    def observe(self, load: Load) -> Observation:
        """Return what the load's own record shows, for an instrument that needs no other look."""
        raise NotImplementedError

    def obstacles(self, stack: StackPlan, workload: Workload) -> Iterable[str]:  # noqa: ARG002
        """Return a sentence for everything that keeps it from looking at such a treatment."""
        return ()

    def check_usable(self, stack: StackPlan) -> None:
        """Find out on the host that measures, before services start, whether it can be used.

        It is asked once for every treatment that it looks at.

        Raises
        ------
        PerflabError
            It cannot.
        """

    @model_serializer(mode="wrap")
    def _with_kind(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return {KIND: kind_of(type(self)), **handler(self)}


class _AtRecord(Look):
    def __init__(self, instrument: Instrument) -> None:
        self._instrument = instrument

    def observe(self, load: Load) -> Observation:
        return self._instrument.observe(load)


def kind_of(kind: type[Instrument]) -> str:
    """Return the name under which a class of instruments is found again."""
    return f"{kind.__module__}:{kind.__qualname__}"


def found(written: Any) -> Any:
    """Return the instrument that is written as ``{"kind": "module:Class", ...settings}``.

    Raises ExperimentError where there is no such class below ``perflab``, or it is no instrument.
    """
    if not isinstance(written, Mapping):
        return written
    settings = {name: value for name, value in written.items() if name != KIND}
    return kind_named(str(written.get(KIND, ""))).model_validate(settings)


def kind_named(name: str) -> type[Instrument]:
    """Return a class of instruments by ``module:Class``; raises as :func:`found` does."""
    module, _, wanted = name.partition(":")
    if not module.startswith(BELOW) or not wanted.isidentifier():
        raise ExperimentError(
            f"instrument '{name}': give module:Class, and a module below '{BELOW[:-1]}'"
        )
    try:
        kind = getattr(importlib.import_module(module), wanted, None)
    except ImportError as error:
        raise ExperimentError(f"instrument '{name}': {error}") from None
    if not (isinstance(kind, type) and issubclass(kind, Instrument)):
        raise ExperimentError(f"instrument '{name}': '{wanted}' is no class of instruments there")
    return kind


NamedInstrument = Annotated[SerializeAsAny[Instrument], BeforeValidator(found)]


def no_node(instrument: str, node: str, stack: StackPlan) -> list[str]:
    """Return what is wrong where an instrument is meant for a node that the stack does not have."""
    names = [known.name for known in stack.nodes]
    if node in names:
        return []
    return [f"{instrument}: the stack has no node '{node}'; nodes: {', '.join(names)}"]
