"""Which of two or more variants of a service of one's own is slower, and by how much?"""

from __future__ import annotations

import hashlib
import itertools
import json
import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from perflab import credentials
from perflab.host.own_folders import own_folder
from perflab.instruments import STANDARD
from perflab.load.clients.targets import is_this_machine
from perflab.load.literals import ASSIGNED
from perflab.load.workers.script_names import request_names
from perflab.paths import state_dir, variants_dir
from perflab.recordings import Contrast, Remark
from perflab.recordings.responses import FAILURES, SHARED_STORE, named, split_request
from perflab.stacks.builds import made
from perflab.stacks.plan import Node, StackPlan
from perflab.stacks.spec import BEGIN_IN, PREPARE, VARIANT
from perflab.stacks.stores import store_node
from perflab.systems.custom.fields import begins_in
from perflab.systems.custom.instruments import ByRequest, RightAnswer, ServiceCost
from perflab.systems.custom.needs import image_of
from perflab.systems.custom.parameters import OwnServiceParameters
from perflab.systems.custom.responses import RESPONSES
from perflab.systems.custom.revisions import is_dirty, merge_base, top_of
from perflab.systems.custom.stores import SharedStores, StoreRows
from perflab.systems.custom.trees import script_of_commit, script_of_tree, without_repository
from perflab.systems.custom.variants import PLACEHOLDER, TREES, Variant, words_of
from perflab.trials.experiment import Experiment
from perflab.trials.plan import Target, Treatment

FACTOR = "variant"
# The verdict has its sentences in this order.
COMPARED = (
    "throughput_rps", "mean_ms", "p50_ms", "p99_ms", "service_cpu_us_per_request",
    "service_memory_bytes", FAILURES,
)  # fmt: skip
OF_THE_SERVICE = ("service_cpu_us_per_request", "service_memory_bytes")
SET_BY_LOAD = "an open loop sends at the rate that was asked for, whatever the service does"
PREPARED_IN = f'cd "$1"/{{folder}}\neval "${PREPARE}"\n'
SCRIPT = "prepare.sh"


def _treatment(variant: Variant, parameters: OwnServiceParameters) -> Treatment:
    """Return the treatment of a variant, which the lab starts, or which runs already (a URL)."""
    target: Target | None = None
    nodes: tuple[Node, ...] = ()
    if variant.kind == "url":
        target = Target(
            url=variant.place,
            is_here=is_this_machine(variant.place),
            allowed=parameters.allow_targets,
        )
    else:
        stores = {role: _needed(variant, role, parameters) for role in parameters.roles}
        needs = {role: store.name for role, store in stores.items()}
        own = Node(name=variant.name, service=service_of(variant, parameters), needs=needs)
        nodes = (*stores.values(), own)
    check = RightAnswer(
        variant=variant.name,
        target=target.url if target else "",
        allowed=parameters.allow_targets,
    )
    names = parameters.request_names
    are_counted = any(image_of(kind) is None for kind in parameters.roles.values())
    counting = (StoreRows(),) if nodes and are_counted else ()
    sharing = (SharedStores(addresses=parameters.also),) if nodes and parameters.also else ()
    by_request = (ByRequest(names=names),) if names else ()
    return Treatment(
        name=f"{FACTOR}={variant.name}",
        label=variant.label,
        levels={FACTOR: variant.name},
        stack=StackPlan(nodes=nodes),
        workload=parameters.workload(variant.name if nodes else ""),
        instruments=(check, *STANDARD, ServiceCost(), *by_request, *counting, *sharing),
        target=target,
    )


def _needed(variant: Variant, role: str, parameters: OwnServiceParameters) -> Node:
    """Return the node of what a variant needs, of its own."""
    name, wanted = f"{variant.name}.{role}", parameters.roles[role]
    if image := image_of(wanted):
        service = _written(role, image.description(parameters.start_timeout_s), wanted)
        return Node(name=name, service=service, apart=variant.name)
    return store_node(name, wanted, apart=variant.name)


def service_of(variant: Variant, parameters: OwnServiceParameters) -> str:
    """Return the name of a variant's service; write its description unless it is there."""
    description, script = _description(variant, parameters)

    def fill(folder: Path) -> None:
        if script:
            (folder / SCRIPT).write_text(script)
        if variant.is_tree and not script:
            tree = folder / "tree"
            tree.mkdir()
            without_repository(_filled(variant), tree)
            description["folder"] = str(tree / _below_top(variant))

    return _written(variant.name, description, script, variant.text, fill=fill)


def _written(
    stem: str,
    description: dict[str, Any],
    *marks: str,
    fill: Callable[[Path], None] = lambda _: None,
) -> str:
    """Write a description, unless it is there, and return the name of its service.

    It lies in a folder that is named by its content, which has what ``fill`` puts there.
    """
    digest = hashlib.sha256(json.dumps([description, *marks]).encode()).hexdigest()
    # Container engines allow only small letters in names.
    plain = re.sub("[^a-z0-9]+", "-", stem.lower()).strip("-")
    name = f"{VARIANT}{plain}-{digest[:12]}"

    def make(folder: Path) -> None:
        fill(folder)
        entries = {"name": name, **description}.items()
        toml = "".join(f"{entry} = {_value(value)}\n" for entry, value in entries)
        (folder / "service.toml").write_text(toml, encoding="utf-8")

    own_folder(state_dir())
    root = own_folder(variants_dir())
    made(root / name, make)
    return name


def _description(variant: Variant, parameters: OwnServiceParameters) -> tuple[dict[str, Any], str]:
    """Return the entries of the description, and the script that prepares a process."""
    passed = parameters.variables
    variables = {"PORT": "{port}", "HOST": "{host}", **passed}
    description: dict[str, Any] = {
        "summary": variant.text,
        "command": [],
        "of_user": True,
        "environment": variables,
        "needs": list(parameters.roles),
        "health": {
            "http": parameters.health or parameters.first_path,
            "any_status": not parameters.health,
            "timeout_s": parameters.start_timeout_s,
        },
    }
    script, begin = "", [*BEGIN_IN, str(begins_in(parameters.folder))]
    match variant.kind:
        case "command":
            words = _taken_out(words_of(variant.place, parameters.told), variables)
            description["command"] = [*begin, *words]
        case "git" | "tree" if parameters.command:
            words = _taken_out(words_of(parameters.command, parameters.told), variables)
            below = _below_top(variant)
            begin = [*BEGIN_IN, f"{{artifacts}}/{below}"]
            description["command"] = [*begin, *words]
            script = _filled(variant) + PREPARED_IN.format(folder=shlex.quote(str(below)))
            # What a store tells is not known before it runs.
            known = {name: text for name, text in passed.items() if not PLACEHOLDER.search(text)}
            of_prepare = {**known, PREPARE: parameters.prepare}
            made_from = json.dumps([script, of_prepare])
            description["process"] = {
                "prepare": ["sh", "{source}/" + SCRIPT, "{artifacts}"],
                "variables": of_prepare,
                "artifacts": f"tree-{hashlib.sha256(made_from.encode()).hexdigest()[:12]}",
            }
        case "dockerfile":
            description["folder"] = variant.place
        case "image":
            description["docker"] = {"image": variant.place}
    if parameters.setup:
        words = _taken_out(words_of(parameters.setup, parameters.told), variables)
        # In a container it begins in the image's own folder.
        description["setup"] = {"command": [*begin * bool(description["command"]), *words]}
    return description, script


def _filled(variant: Variant) -> str:
    """Return the script that fills a folder with the files of a variant."""
    if variant.kind == "tree":
        return script_of_tree(variant.commit)
    return script_of_commit(Path(variant.place), variant.commit)


def _below_top(variant: Variant) -> Path:
    """Return where, within its files, the folder is that a variant names."""
    return top_of(Path(variant.place))[1]


def _taken_out(words: list[str], variables: dict[str, str]) -> list[str]:
    """Return a command without the credentials that ``env`` would set; put them into variables.

    The arguments of a process can be read by everybody, and its environment only by its user.
    """
    if words[0] != "env":
        return words
    assignments = [*itertools.takewhile(ASSIGNED.fullmatch, words[1:])]
    credential = [word for word in assignments if credentials.names_in(word)]
    pairs = (word.partition("=") for word in credential)
    variables.update((name, value) for name, _, value in pairs)
    plain = [word for word in assignments if word not in credential]
    return ["env", *plain, *words[1 + len(assignments) :]]


def _value(value: Any) -> str:
    """Return a value as TOML, whose strings, lists and numbers are written as in JSON.

    Only halves of characters would be no TOML: JSON escapes an emoji as two of them.
    """
    if isinstance(value, Mapping):
        pairs = (f"{_value(name)} = {_value(item)}" for name, item in value.items())
        return "{" + ", ".join(pairs) + "}"
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _contrasts(parameters: OwnServiceParameters) -> list[Contrast]:
    first, *others = parameters.parsed_variants
    return [
        _contrast(other, first, response, parameters)
        for other in others
        for response in (*COMPARED, *parameters.named_responses)
        if not (response in OF_THE_SERVICE and "url" in (first.kind, other.kind))
    ]


def _contrast(
    other: Variant, first: Variant, response: str, parameters: OwnServiceParameters
) -> Contrast:
    declared = named(RESPONSES, response)
    assert declared is not None
    return Contrast(
        name=f"{other.name} against {first.name}: {response}",
        claim=f"{other.name} against {first.name}: {declared.title}",
        response=response,
        scale="difference" if split_request(response)[0] == FAILURES else "ratio",
        numerator={FACTOR: other.name},
        denominator={FACTOR: first.name},
        set_by_load=SET_BY_LOAD if parameters.rate and response == "throughput_rps" else "",
    )


def _diverged(variants: Sequence[Variant]) -> list[str]:
    """Return a text for each variant whose history lacks commits of the first one's."""
    old, *others = variants
    texts = []
    for new in others:
        if {old.kind, new.kind} != {"git"} or old.place != new.place:
            continue
        base = merge_base(Path(old.place), old.commit, new.commit)
        if base and base not in (old.commit, new.commit):
            texts.append(
                f"{old.name} has commits that {new.name} lacks, which are compared as well: for "
                f"the changes of {new.name} alone, name the revision {base:.9} for {old.name}"
            )
    return texts


def _warnings(parameters: OwnServiceParameters) -> Sequence[Remark]:
    variants = parameters.parsed_variants
    of_kind = {kind: [each.place for each in variants if each.kind == kind] for kind in TREES}
    texts = [
        f"{Path(place).name} has changes that are not committed: no measured revision holds them"
        for place in dict.fromkeys(of_kind["git"])
        if place not in of_kind["tree"] and is_dirty(Path(place))
    ]
    texts += _diverged(variants)
    commands = [variant.name for variant in variants if variant.kind == "command"]
    if commands and parameters.folder:
        texts.append(
            f"the code of {', '.join(commands)} is not recorded: commit it and name its revision "
            "(git:REPOSITORY@REVISION)"
        )
    if parameters.script:
        texts.append("whole trials follow one another: users of a script keep state")
        if not request_names(parameters.script)[1]:
            texts.append(
                "some requests of the script have no rows of their own, because their names are "
                "put together when they are sent: give them a text, such as name='item'"
            )
    urls = [variant.name for variant in variants if variant.kind == "url"]
    if urls:
        texts.append(
            f"{', '.join(urls)}: the lab did not start it, and cannot start it afresh for every "
            "block, so a difference of 1 or 2% may be that of its process; its CPU and memory are "
            "not known and not compared"
        )
    if images := [role for role, kind in parameters.roles.items() if image_of(kind)]:
        texts.append(
            f"{', '.join(images)}: requests to it pass the container engine, whose time is in that "
            "of each answer, and whose CPU counts as nobody's"
        )
    shared = (
        f"{address}: the lab did not start this store; all variants share it, and it grows by what "
        "the load writes, from block to block"
        for address in parameters.also
    )
    return [
        *(Remark(code=SHARED_STORE, text=text) for text in shared),
        *(Remark(code="own.variants", text=text) for text in texts),
    ]


EXPERIMENT = Experiment(
    name="custom_service",
    title="Variants of a service, side by side",
    question="Which variant is slower, takes more CPU or memory, or fails more often, by how much, "
    "and how sure is that?",
    parameters=OwnServiceParameters,
    treatments=lambda parameters: [
        _treatment(variant, parameters) for variant in parameters.parsed_variants
    ],
    contrasts=_contrasts,
    warnings=_warnings,
)
