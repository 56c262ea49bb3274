"""What a duel is asked for: variants, how they are started, and the one load that all get."""

from __future__ import annotations

from pathlib import Path

from pydantic import Field, ValidationError, ValidationInfo, field_validator, model_validator

from perflab.load.options import LoadParameters
from perflab.load.workload import Workload
from perflab.paths import services_dir
from perflab.stacks.process_backend import BACKENDS
from perflab.systems.custom.revisions import holds
from perflab.systems.custom.variants import Variant, all_variants, words_of
from perflab.trials.experiment import DesignParameters

USERS = 4
SERVER = "command:python3 server.py --port {port}"


def begins_in(folder: str) -> Path:
    """Return where relative places and commands begin: a folder, or the lab's own example."""
    return Path(folder) if folder else services_dir() / "duel_example"


class OwnServiceParameters(LoadParameters, DesignParameters):
    """Parameters of a comparison of one's own variants; the first is what others are held against.

    Revisions are recorded by their commits and places as absolute, so that a run can be finished
    whatever a branch has come to be called since.
    """

    folder: str = Field(
        default="",
        description="where relative places and command variants begin; empty: the example that "
        "comes with the lab",
    )
    variants: tuple[str, ...] = Field(
        default=(f"old={SERVER} --rounds 1000", f"new={SERVER} --rounds 1500"),
        min_length=2,
        description="NAME=KIND:WHAT, the first is the baseline; kinds: git:REPOSITORY@REVISION, "
        "command:WORDS, url:http://HOST:PORT, image:NAME:TAG, dockerfile:FOLDER",
    )
    command: str = Field(
        default="",
        description="starts a git variant, with {port}; empty: by the Dockerfile of the revision",
    )
    prepare: str = Field(
        default="",
        description="shell words that are run once in the files of each git variant, such as those "
        "that install its packages; goes with command",
    )
    health: str = Field(
        default="",
        description="path that answers 200 when a variant is ready; empty: any answer of the "
        "workload's path below 500",
    )
    start_timeout_s: float = Field(
        default=60.0, gt=0, le=3600, description="seconds within which a variant must be ready"
    )
    path: str = Field(default="/", description="path and query of the request")
    users: int = Field(
        default=USERS, ge=1, le=20_000, description="closed loop: each waits for its answer"
    )
    duration_s: float = Field(
        default=3.0, ge=0.1, le=3600, description="seconds of each trial that count"
    )
    warmup_s: float = Field(
        default=1.0, ge=0, le=3600, description="seconds before them, recorded apart"
    )
    timeout_s: float = Field(
        default=10.0, gt=0, le=600, description="seconds after which a request counts as failed"
    )

    @field_validator("folder")
    @classmethod
    def _is_a_folder(cls, folder: str) -> str:
        place = Path(folder).expanduser().resolve()
        if not folder:
            return folder
        if not place.is_dir():
            raise ValueError("no such folder")
        if "{" in str(place):
            raise ValueError("a brace in its path would be taken for a placeholder")
        return str(place)

    @field_validator("variants")
    @classmethod
    def _are_there(cls, variants: tuple[str, ...], info: ValidationInfo) -> tuple[str, ...]:
        # The folder comes before: where it is wrong, that is what is told.
        place = begins_in(str(info.data.get("folder", "")))
        return tuple(each.text for each in all_variants(variants, place))

    @model_validator(mode="after")
    def _can_be_carried_out(self) -> OwnServiceParameters:
        found = self.found
        problems = [*self._of_starts(found), *self._of_load()]
        backend, wrong = self._backend(found)
        if problems or wrong:
            raise ValueError("; ".join([*problems, *wrong]))
        return self.model_copy(update={"backend": backend})

    @property
    def begins_in(self) -> Path:
        """Return the folder of relative places, and of commands."""
        return begins_in(self.folder)

    @property
    def found(self) -> tuple[Variant, ...]:
        """Return the variants."""
        return all_variants(self.variants, self.begins_in)

    def _of_starts(self, found: tuple[Variant, ...]) -> list[str]:
        git = [each for each in found if each.kind == "git"]
        problems = []
        if self.command:
            try:
                words_of(self.command)
            except ValueError as error:
                problems.append(f"command: {error}")
            if not git:
                problems.append("command starts git variants, and there is none")
        elif self.prepare:
            problems.append("prepare goes with command: an image is prepared by its Dockerfile")
        for each in git if not self.command else []:
            if not holds(Path(each.place), each.commit, "Dockerfile"):
                problems.append(
                    f"{each.name}: {each.commit[:9]} has no Dockerfile; give the command that "
                    "starts it (--command 'python app.py --port {port}')"
                )
        if self.health and not self.health.startswith("/"):
            problems.append(f"health = '{self.health}' is no path; write it like /health")
        return problems

    def _of_load(self) -> list[str]:
        problems = []
        if self.rate and (self.users != USERS or self.think_time_s):
            problems.append("give rate, or users and think_time_s, not both")
        if self.arrivals == "poisson" and not self.rate:
            problems.append("arrivals = 'poisson' needs a rate")
        if not problems:
            try:
                self.workload("")
            except ValidationError as error:
                problems += [f"{each['loc'][-1]}: {each['msg']}" for each in error.errors()]
        return problems

    def _backend(self, found: tuple[Variant, ...]) -> tuple[str, list[str]]:
        """Return the one backend on which these can run, and what is wrong with the choice."""
        needs: dict[str, list[str]] = {}
        for each in found:
            if each.kind != "url":
                is_process = each.kind == "command" or (each.kind == "git" and self.command)
                needs.setdefault(BACKENDS[2] if is_process else BACKENDS[1], []).append(each.name)
        if len(needs) > 1:
            words = "; ".join(f"{name}: {', '.join(each)}" for name, each in needs.items())
            return self.backend, [f"variants of one duel run all alike, not on two sides ({words})"]
        needed = next(iter(needs), BACKENDS[2])
        if self.backend not in (BACKENDS[0], needed):
            return self.backend, [
                f"backend = '{self.backend}', and these variants need '{needed}'; leave it out"
            ]
        return needed, []

    def workload(self, node: str) -> Workload:
        """Return the load of every variant."""
        words = self.words(self.path)
        words["request"]["node"] = node
        return Workload.model_validate(words)
