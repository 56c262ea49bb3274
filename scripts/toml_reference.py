"""Write the reference of ``perflab.toml`` from the models that read it.

python scripts/toml_reference.py            # rewrite docs/reference/perflab-toml.md
python scripts/toml_reference.py --check    # say whether it differs; nothing is written
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence

from perflab import systems
from perflab.analysis.gates.thresholds import MORE_IS_BETTER, NAMES
from perflab.cli.experiments import parameters_of, typed
from perflab.load.options import LoadParameters
from perflab.paths import project_root
from perflab.project import DUELS, EXPERIMENTS, RESULTS
from perflab.recordings.responses import BY_REQUEST, named
from perflab.stacks.spec import load_service, service_names
from perflab.stacks.stores import PREFIX
from perflab.systems.custom.named_requests import NamedRequest
from perflab.systems.custom.needs import TOLD
from perflab.systems.custom.parameters import OwnServiceParameters
from perflab.systems.custom.variants import KINDS, KNOWN
from perflab.trials.run_parameters import OF_THE_CALL, DesignParameters

PAGE = project_root() / "docs" / "reference" / "perflab-toml.md"

# Where a key stands that has no table of its own.
OF_VARIANTS = ("variants", "against", "working_tree", "folder")
OF_LOAD = (*LoadParameters.model_fields, "path", "requests", "script")
# Tables whose entries make one parameter, as they are written.
AS_TABLE = dict.fromkeys(("env", "needs", "variants"), "table, or list: text")
OF_A_REQUEST = {
    "name": "in the table, and in gates (create:p99>1.1)",
    "weight": "how often it is sent, against the sum of all weights",
}
STARTED = {
    "git": "a commit of a repository",
    "tree": "the files of a folder as they are",
    "command": "a program, in the file's folder",
    "url": "nothing: it runs already",
    "image": "a container of an image that the engine has",
    "dockerfile": "a container of an image that is built from the folder",
}
FRAME = """# perflab.toml

The file of a project: where its results are, how its service is started, what it needs, and what
its users do. `perflab new project` writes it with what it finds, `perflab doctor` says what of it
does not work here, and `perflab duel`, the notebook of duels (`project = "perflab.toml"`) and `-p
project=perflab.toml` read it. A complete one for each of five stacks is in [the how-to of
duels](../how-to/duel.md#five-complete-files).

Paths are relative to the file. Wrong keys are told with their line, and the nearest known name.
`duel.toml` has the same keys, and names variants as well. Each key of `[service]` and `[load]` is a
parameter of the experiment `custom_service`, and most are an option of `perflab duel`, which
overrules the file. This page is made from the models that read the file.

## [results] and [experiments]

{results}

## [service]: how it starts

{service}

### [service.needs]: kinds of stores

Each variant has stores of its own, which begin every block with a copy of what `setup` left. A
`NAME` is a word of small letters; what it tells is in `{{NAME.url}}` and so on.

{needs}

Any other server comes from an image that the Docker engine has: `image` and `port` must be given,
and `env` has variables of its container. It tells `host`, `port` and `url`, and starts empty for
every block; then `setup` runs before every block.

```toml
[service.needs]
db = "postgres:18"
search = {{image = "docker.io/library/elasticsearch:8.17.0", port = 9200}}

[service.needs.search.env]
"discovery.type" = "single-node"
"xpack.security.enabled" = "false"
```

### Placeholders

{placeholders}

## [load]: what its users do

{load}

### [[load.requests]]: several requests

{requests}

## [variants]: what is compared

In `duel.toml`, or by `--variant` and `--against`. `NAME = "KIND:WHAT"`; the first is the baseline.

{variants}

{comparison}

## At the top: how it is measured and judged

{measuring}

### fail_on: responses for gates

`fail_on = ["p99>1.05"]`, and `strict = true` (false): a threshold that is not decided ends a duel
with status 5.
`NAME:` before a threshold names one of several requests.

{gates}
"""


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table in Markdown."""
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join(f"| {' | '.join(each.replace('|', chr(92) + '|') for each in line)} |"
                     for line in lines)  # fmt: skip


def page() -> str:
    """Return the text of the page."""
    parameters = {each["name"]: each for each in parameters_of(OwnServiceParameters)}
    measuring = [name for name in DesignParameters.model_fields if name not in OF_THE_CALL]
    apart = {*OF_VARIANTS, *OF_LOAD, *DesignParameters.model_fields, "project"}
    service = [name for name in parameters if name not in apart]

    def keys(names: Iterable[str]) -> str:
        return table(
            ("key", "type", "default", "meaning"),
            [
                (f"`{name}`", AS_TABLE.get(name, item["allowed"]),
                 "must be given, or against" if name == "variants" else typed(item["default"]),
                 item["meaning"])
                for name in names if (item := parameters.get(name))
            ],
        )  # fmt: skip

    responses = systems.experiment(DUELS).responses
    gates = []
    for name, column in NAMES.items():
        sign, declared = "<" if name in MORE_IS_BETTER else ">", named(responses, column)
        assert declared is not None
        bound = "difference of shares" if column == "failure_share" else "ratio to the baseline"
        by_request = "yes" if column in BY_REQUEST else "no"
        gates.append((f"`{name}{sign}`", declared.title, declared.unit, bound, by_request))
    stores = [load_service(name) for name in service_names() if name.startswith(PREFIX)]
    return FRAME.format(
        results=table(
            ("key", "type", "default", "meaning"),
            [
                *((f"`results.{name}`", "folder", folder, f"where {name} go")
                  for name, folder in RESULTS.items()),
                ("`experiments.folders`", "list: folder", EXPERIMENTS,
                 "where experiments of your own are"),
            ],
        ),
        service=keys(service),
        needs=table(
            ("kind", "what is started", "address that it tells"),
            [
                (f"`{spec.name.removeprefix(PREFIX)}`", spec.store.text, f"`{spec.store.url}`")
                for spec in stores if spec.store
            ],
        ),
        placeholders=table(
            ("placeholder", "stands in", "is"),
            [
                *((f"`{{{name}}}`", "command, setup, env", f"the {name} to listen at")
                  for name in KNOWN),
                *((f"`{{NAME.{field}}}`", "command, setup, env", f"the {field} of a store")
                  for field in TOLD),
                ("`{env:VARIABLE}`", "command, prepare, env, [load]",
                 "a variable of yours, never shown"),
                ("`{uuid}`", "requests", "another UUID each time"),
                ("`{user}`", "requests", "the number of the user"),
                ("`{random:A-B}`", "requests", "a whole number from A to B"),
                ("`{line:FILE}`", "requests", "one of the lines of a file"),
            ],
        ),
        load=keys([name for name in parameters if name in OF_LOAD]),
        requests=table(
            ("key", "type", "default", "meaning"),
            [
                (f"`{item['name']}`", item["allowed"],
                 "must be given" if NamedRequest.model_fields[item["name"]].is_required()
                 else typed(item["default"]) if item["default"] else "empty",
                 item["meaning"] or OF_A_REQUEST.get(item["name"], "")
                 or parameters.get(item["name"], {}).get("meaning", ""))
                for item in parameters_of(NamedRequest)
            ],
        ),
        variants=table(
            ("kind", "what", "what is started"),
            [(f"`{kind}:`", what, STARTED[kind]) for kind, what in KINDS.items()],
        ),
        comparison=keys(OF_VARIANTS),
        measuring=keys(measuring),
        gates=table(("threshold", "response", "unit", "is about", "of one request"), gates),
    )  # fmt: skip


def main(words: Sequence[str]) -> int:
    """Write the page, or return 1 where it differs."""
    text = page()
    if "--check" not in words:
        PAGE.write_text(text, encoding="utf-8")
    elif PAGE.read_text(encoding="utf-8") != text:
        print(f"{PAGE.name} is not what the models say: python scripts/toml_reference.py")
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
