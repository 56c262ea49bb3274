"""Parameters of a duel, checked together before anything starts."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from pydantic import ValidationError, ValidationInfo, field_validator, model_validator

from perflab.analysis.gates.first_line import fewest_blocks_of_pairs
from perflab.analysis.gates.gate_blocks import SPARE_BLOCKS
from perflab.errors import ParameterError
from perflab.host.foreign_stores import is_loopback
from perflab.host.foreign_stores import problems as foreign_stores
from perflab.load.address_secrets import without_passwords
from perflab.load.workload import Workload
from perflab.parameters import message_of
from perflab.project import FILE
from perflab.stacks.process_backend import BACKENDS
from perflab.systems.custom.fields import DEFAULTS, USERS, DuelFields, begins_in
from perflab.systems.custom.needs import problems as of_needs
from perflab.systems.custom.needs import to_declare
from perflab.systems.custom.programs import problems as of_programs
from perflab.systems.custom.revisions import against, holds
from perflab.systems.custom.variants import Variant, all_variants, without_value, words_of
from perflab.trials.parameter_file import GATE, merged, read_parameters
from perflab.trials.warming import LEAST_S

# Of the sequence of requests: the same in all duels, so that repeating one sends the same.
MIX_SEED = 1
OF_AGAINST = ("against", "working_tree")


def _projects_below(folder: Path) -> str:
    """Return, as a clause, the folders below with a project's file, as in a monorepo."""
    files = [*folder.glob(f"*/{FILE}"), *folder.glob(f"*/*/{FILE}")]
    places = sorted(str(file.parent.relative_to(folder)) for file in files)
    return f"; or call it from a folder that has a {FILE}: {', '.join(places)}" if places else ""


def _has_dockerfile(variant: Variant) -> bool:
    if variant.kind == "git":
        return holds(Path(variant.place), variant.commit, "Dockerfile")
    return (Path(variant.place) / "Dockerfile").is_file()


class OwnServiceParameters(DuelFields):
    """Parameters of a comparison of a user's variants with the first of them.

    Revisions are recorded as commits and places as absolute paths, so that a run can be finished
    after a branch has moved.
    """

    @model_validator(mode="before")
    @classmethod
    def _named_by_revision_and_file(cls, values: Any) -> Any:
        """Return the parameters with those of the file, and the variants of ``against``."""
        if not isinstance(values, Mapping):
            return values
        if file := values.get("project"):
            path = Path(file).expanduser()
            of_file, _ = read_parameters(path, f"project = {file!r}")
            values = merged(of_file, {**values, "project": ""}, path)
            values = {name: value for name, value in values.items() if name not in GATE}
            if not {"variants", "against"} & values.keys():
                raise ValueError(f"give variants, or against: {path} says only how they start")
        revision, working_tree = values.get("against", ""), values.get("working_tree", False)
        if working_tree and not revision:
            raise ValueError("working_tree needs against, the revision to compare with")
        if not revision:
            return values
        if list(values.get("variants") or DEFAULTS) != DEFAULTS:
            raise ValueError("give variants, or against, not both")
        rest = {name: value for name, value in values.items() if name not in OF_AGAINST}
        place = Path(values.get("folder") or ".").expanduser().resolve()
        return rest | {"variants": against(place, revision, bool(working_tree))}

    @field_validator("folder")
    @classmethod
    def _is_a_folder(cls, folder: str) -> str:
        place = Path(folder).expanduser().resolve()
        if not folder:
            return folder
        if not place.is_dir():
            raise ValueError("no such folder")
        if "{" in str(place):
            raise ValueError("its path has a brace, which would be read as a placeholder")
        return str(place)

    @field_validator("variants")
    @classmethod
    def _are_there(cls, variants: tuple[str, ...], info: ValidationInfo) -> tuple[str, ...]:
        # Pydantic has checked the folder before and reports its problem first.
        folder = begins_in(str(info.data.get("folder", "")))
        return tuple(variant.text for variant in all_variants(variants, folder))

    @model_validator(mode="after")
    def _can_be_carried_out(self) -> OwnServiceParameters:
        variants = self.parsed_variants
        problems = [*self._of_starts(variants), *self._of_needs(variants)]
        problems += [*self._of_stores(variants), *self._of_load()]
        if self.why and any(variant.kind == "url" for variant in variants):
            problems.append("why needs services that the lab starts, and url: is none")
        if self.why and self.metrics and not find_spec("prometheus_client"):
            problems.append("metrics needs prometheus-client: pip install 'perflab[lab]'")
        backend, backend_problems = self._backend(variants)
        if problems or backend_problems:
            raise ValueError("\n".join([*problems, *backend_problems]))
        return self.model_copy(update={"backend": backend, **self._enough_blocks(variants)})

    def _enough_blocks(self, variants: tuple[Variant, ...]) -> dict[str, int]:
        """Return the number of blocks, if it was not given: one more than all pairs need."""
        if "blocks" in self.model_fields_set:
            return {}
        needed = fewest_blocks_of_pairs(len(variants) - 1, len(self.request_names)) + SPARE_BLOCKS
        return {"blocks": max(int(self.blocks), needed)}

    @cached_property
    def parsed_variants(self) -> tuple[Variant, ...]:
        """Return the variants, read and checked."""
        return all_variants(self.variants, begins_in(self.folder))

    def _commands(self, variants: tuple[Variant, ...]) -> list[tuple[str, str]]:
        """Return each command after its name: a variant may be named like a parameter."""
        own = [(each.name, each.place) for each in variants if each.kind == "command"]
        return [("setup", self.setup), ("command", self.command), *own]

    def _of_needs(self, variants: tuple[Variant, ...]) -> list[str]:
        problems = []
        if any(variant.kind == "url" for variant in variants):
            problems += [
                f"{name} is only for variants that the lab starts, and url: is none"
                for name in ("needs", "setup")
                if getattr(self, name)
            ]
        if self.needs and self.fresh_blocks != 1:
            problems.append(
                f"fresh_blocks = {self.fresh_blocks}: what is needed begins every block in one "
                "state only if it is started afresh for each; leave fresh_blocks at 1"
            )
        problems += of_needs(self.roles)
        variables = [(f"env {name}", text) for name, text in self.variables.items()]
        for name, text in [*variables, *self._commands(variants)]:
            try:
                if problem := without_value(text, self.told):
                    raise ValueError(problem + to_declare(text, self.told))
                if text and not name.startswith("env "):
                    words_of(text, self.told)
            except ValueError as error:
                problems.append(f"{name}: {error}")
        return problems

    def _of_starts(self, variants: tuple[Variant, ...]) -> list[str]:
        trees = [variant for variant in variants if variant.is_tree]
        problems = []
        if self.command:
            if not trees:
                problems.append(
                    "command is only for git and tree variants, and there is none; leave it out"
                )
        elif self.prepare:
            problems.append("prepare needs command: without one, the Dockerfile prepares the image")
        for variant in trees if not self.command else []:
            if not _has_dockerfile(variant):
                problems.append(
                    f"{variant.name}: {variant.commit[:9]} has no Dockerfile; give the command "
                    "that starts it (--command 'python3 app.py --port {port}')"
                    + _projects_below(begins_in(self.folder))
                )
        if "PATH" not in self.variables:
            commands = [("command", self.command), ("setup", self.setup)]
            problems += of_programs(variants, commands, self.prepare, begins_in(self.folder))
        for name in ("health", "metrics"):
            path = getattr(self, name)
            if path and not path.startswith("/"):
                problems.append(f"{name} = '{path}' is no path; a path begins with /, like /{name}")
        return problems

    def _of_stores(self, variants: tuple[Variant, ...]) -> list[str]:
        """Return why the addresses of stores that variants would get are not safe."""
        commands = [("prepare", self.prepare), *self._commands(variants)]
        outside = [address for address in self.also if not is_loopback(address)]
        refused = [
            f"also: {without_passwords(address)} is no address of loopback, and the load changes "
            "what it meets: let the lab start a store (needs)"
            for address in outside
        ]
        return refused or foreign_stores([*self.variables.items(), *commands], self.also)

    def _of_load(self) -> list[str]:
        problems = []
        if self.rate and (self.users != USERS or self.think_time_s):
            problems.append("give rate, or users and think_time_s, not both")
        lone = {"path": "/", "method": "", "body": "", "expect_status": 200, "expect_body": ""}
        if self.script:
            lone |= {"requests": (), "rate": 0.0, "think_time_s": 0.0}
        given = [name for name, default in lone.items() if getattr(self, name) != default]
        if (instead := "script" if self.script else "requests" * bool(self.requests)) and given:
            problems.append(f"give {instead}, or {', '.join(given)}, not both")
        if self.arrivals == "poisson" and not self.rate:
            problems.append("arrivals = 'poisson' needs a rate")
        if not problems:
            try:
                self.workload("")
            except ParameterError as error:
                problems += error.problems
            except ValidationError as error:
                problems += [
                    ": ".join([*map(str, problem["loc"][-1:]), message_of(problem)])
                    for problem in error.errors()
                ]
        return problems

    def _backend(self, variants: tuple[Variant, ...]) -> tuple[str, list[str]]:
        """Return the one backend that all variants can run on, and the problems of the choice."""
        names_by_backend: dict[str, list[str]] = {}
        for variant in variants:
            if variant.kind != "url":
                is_process = variant.kind == "command" or (variant.is_tree and self.command)
                backend = BACKENDS[2] if is_process else BACKENDS[1]
                names_by_backend.setdefault(backend, []).append(variant.name)
        if len(names_by_backend) > 1:
            words = "; ".join(
                f"{name}: {', '.join(names)}" for name, names in names_by_backend.items()
            )
            return self.backend, [f"variants of one duel must all run on one backend ({words})"]
        needed = next(iter(names_by_backend), BACKENDS[2])
        if self.backend not in (BACKENDS[0], needed):
            return self.backend, [
                f"backend = '{self.backend}', and these variants need '{needed}'; leave it out"
            ]
        return needed, []

    def workload(self, node: str) -> Workload:
        """Return the load of every variant."""
        given = self if not self.finds_warmup else self.model_copy(update={"warmup_s": LEAST_S})
        words = given.words(self.path)
        shared = words["request"]["headers"]
        if self.script:
            words["arrivals"] = {**words["arrivals"], "seed": MIX_SEED}
        if self.requests:
            folder = str(begins_in(self.folder))
            words["mix"] = [each.words(shared, folder) for each in self.requests]
            words["request"] = words["mix"][0]["request"]
            words["seed"] = MIX_SEED
        words["request"]["node"] = node
        return Workload.model_validate(words)
