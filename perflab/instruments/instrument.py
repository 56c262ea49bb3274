"""What an instrument is: it measures beside a load and gives columns, tables and reasons.

An :class:`Instrument` is a description: its fields are its settings, it is checked before anything
starts, and it goes as JSON to the process that measures. For every trial it makes a
:class:`Sensor`, which does the work.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Generic, TypeVar

import pandas as pd
from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    SerializeAsAny,
    SerializerFunctionWrapHandler,
    model_serializer,
)

from perflab.errors import ExperimentError
from perflab.host.meters import Meter, Repeated
from perflab.host.placing import Placement
from perflab.load.records.result import LoadResult
from perflab.load.workload import Workload
from perflab.paths import foreign_dirs, make_importable
from perflab.recordings import Reason, Remark
from perflab.stacks.backend import Instance
from perflab.stacks.commands import Interrupted
from perflab.stacks.plan import StackPlan

if TYPE_CHECKING:
    from perflab.stacks.residents import Residents

KIND = "kind"
BELOW = "perflab"
Settings = TypeVar("Settings", bound="Instrument")


@dataclass(frozen=True)
class Scene:
    """What a sensor needs to know: the services of a treatment, their load, and the machine.

    ``labels`` belong into the environment of processes that a sensor starts, so that clean-up finds
    them. ``client_pids`` are the processes that send the load. Long measurements call
    ``interrupted``, which returns why the run is to end, or an empty string. ``send`` sends another
    load than the trial's own, while no load is under way, and returns its record.
    """

    residents: Residents
    treatment: str
    workload: Workload
    placement: Placement
    labels: Mapping[str, str]
    client_pids: Sequence[int]
    interrupted: Interrupted
    send: Callable[[Workload], LoadResult]

    def instance(self, node: str) -> Instance:
        """Return the instance that serves a node of the stack."""
        return self.residents.instance(self.treatment, node)

    @property
    def services(self) -> dict[str, Instance]:
        """Return the instance of every node of the treatment."""
        return self.residents.active(self.treatment)

    def counts(self, node: str) -> Mapping[str, Any]:
        """Return the counts that a node's service tells of itself."""
        return self.residents.counts(self.treatment)[node]


@dataclass(frozen=True)
class Load:
    """A load that has ended: what was asked for, its record, and samples of ``services``.

    The samples are of CPU and memory. The services are the nodes of the stack, the client and the
    lab, without the processes that instruments have started.
    """

    workload: Workload
    result: LoadResult
    samples: pd.DataFrame
    services: tuple[str, ...]


@dataclass(frozen=True)
class Observation:
    """What a sensor has measured in a trial.

    ``columns`` go into the trial's row; ``tables`` are those that the instrument declares; any
    ``reasons`` make the trial invalid; ``warnings`` travel with its numbers.
    """

    columns: Mapping[str, Any] = field(default_factory=dict)
    tables: Mapping[str, pd.DataFrame] = field(default_factory=dict)
    reasons: Sequence[Reason] = ()
    warnings: Sequence[Remark] = ()


class Sensor(Generic[Settings]):
    """An instrument at work in one trial; each kind overrides the steps that it needs.

    ``settings`` is the instrument, and ``scene`` the trial; ``rows`` are for what it measures. The
    steps run in the order of these methods. An exception in a step makes the trial fail, and the
    run goes on; after a StackError the services start afresh. WrongAnswer ends the run.
    """

    def __init__(self, settings: Settings, scene: Scene) -> None:
        self.settings, self.scene = settings, scene
        self.rows: list[Any] = []

    def before(self) -> None:
        """Measure with the services ready and idle, before the load."""

    def begin(self) -> None:
        """Begin to measure; where this raises, ``end`` is not called."""

    def meters(self) -> Mapping[str, Meter]:
        """Return, after ``begin``, meters of its own processes: their CPU is sampled too."""
        return {}

    def end(self) -> None:
        """End the sensor; called after every ``begin``, also when the load has failed."""

    def after(self) -> None:
        """Measure with the services idle again, after the load."""

    def left(self) -> Mapping[str, pd.DataFrame]:
        """Return the tables of a failed trial, as far as they are filled."""
        return {}

    def observe(self, load: Load) -> Observation:
        """Return what it has measured; by default what the instrument sees in the record."""
        return self.settings.observe(load)


class Sampled(Sensor[Settings]):
    """A sensor that samples from its beginning to its end."""

    @cached_property
    def sampler(self) -> Repeated:
        """Return what samples."""
        raise NotImplementedError

    def begin(self) -> None:
        """Begin to sample."""
        self.sampler.start()

    def end(self) -> None:
        """Stop sampling."""
        self.sampler.stop()


class Instrument(BaseModel):
    """Something that measures in trials; each kind derives a class and adds its settings.

    ``at_work`` is the class of its sensors. ``tables`` declares the tables that it fills besides
    columns: the types of their columns, by table. ``shares_time`` says that it measures its own
    treatment alone, also where several share the time of a block (:mod:`perflab.trials.designs`).
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    at_work: ClassVar[type[Sensor[Any]]] = Sensor
    tables: ClassVar[Mapping[str, Mapping[str, str]]] = {}
    shares_time: ClassVar[bool] = False

    def sensor(self, scene: Scene) -> Sensor[Any]:
        """Return the sensor at one trial."""
        return self.at_work(self, scene)

    def observe(self, load: Load) -> Observation:
        """Return what the load's record shows, for an instrument that needs no other step."""
        raise NotImplementedError

    def obstacles(self, stack: StackPlan, workload: Workload) -> Iterable[str]:  # noqa: ARG002
        """Return a sentence for everything that keeps it from measuring such a treatment."""
        return ()

    def check_usable(self, stack: StackPlan) -> None:
        """Raise where this host cannot use the instrument; before services start.

        The conductor calls it once for every treatment that has the instrument.

        Raises
        ------
        PerflabError
            The instrument cannot be used.
        """

    @model_serializer(mode="wrap")
    def _with_kind(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return {KIND: kind_of(type(self)), **handler(self)}


class OfNode(Instrument):
    """An instrument that measures one node of the stack."""

    node: str

    def obstacles(self, stack: StackPlan, workload: Workload) -> Iterable[str]:  # noqa: ARG002
        """Return a problem where the stack lacks the node."""
        names = [item.name for item in stack.nodes]
        if self.node in names:
            return []
        return [f"{type(self).__name__}: the stack has no node '{self.node}': {', '.join(names)}"]


def kind_of(kind: type[Instrument]) -> str:
    """Return the name by which :func:`from_written` finds a class of instruments."""
    return f"{kind.__module__}:{kind.__qualname__}"


def from_written(written: Any) -> Any:
    """Return the instrument of a mapping ``{"kind": "module:Class", ...settings}``.

    Any other value is returned as it is. Raises ExperimentError where there is no such class below
    ``perflab`` or the user's systems, or the class is no instrument.
    """
    if not isinstance(written, Mapping):
        return written
    settings = dict(written)
    name = str(settings.pop(KIND, ""))
    module, _, class_name = name.partition(":")
    try:
        # A plan is data and must not choose any code.
        make_importable()
        is_ours = module.partition(".")[0] in {BELOW, *(home.name for home in foreign_dirs())}
        kind = getattr(importlib.import_module(module), class_name) if is_ours else None
    except (ImportError, AttributeError) as error:
        raise ExperimentError(f"instrument '{name}': {error}") from None
    if not (isinstance(kind, type) and issubclass(kind, Instrument)):
        raise ExperimentError(f"instrument '{name}' is no class of instruments below '{BELOW}'")
    return kind.model_validate(settings)


NamedInstrument = Annotated[SerializeAsAny[Instrument], BeforeValidator(from_written)]
