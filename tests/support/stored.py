"""Descriptions of a user's service with a store, as a duel writes them, and runs of them."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Any

from perflab.host.own_folders import own_folder
from perflab.instruments import STANDARD
from perflab.load.workload import ClosedLoop, Request, Workload
from perflab.paths import state_dir, variants_dir
from perflab.recordings import Contrast
from perflab.stacks.docker import images
from perflab.stacks.docker.engine import connect
from perflab.stacks.plan import Node, StackPlan
from perflab.stacks.spec import load_service
from perflab.stacks.stores import store_node
from perflab.trials.experiment import Experiment
from perflab.trials.plan import RunPlan, Treatment
from perflab.trials.run_parameters import RunParameters

PROGRAM = Path(__file__).with_name("shop.py")
# The shop in an image of the lab's that has psycopg2; nothing is built for a process.
PYTHON = "/opt/venv/bin/python"
IMAGE = f"""FROM {{base}}
COPY shop.py /srv/
ENTRYPOINT ["{PYTHON}", "/srv/shop.py", "serve"]
"""


def describe(
    name: str,
    setup: str = "",
    notes: Path | str = "",
    timeout_s: float = 60.0,
    docker: bool = False,
) -> str:
    """Write the description of a shop, and return the name of its service."""
    own_folder(state_dir())
    service = f"variant-shop-{name}"
    folder = own_folder(variants_dir()) / service
    folder.mkdir(exist_ok=True)
    program = [PYTHON, "/srv/shop.py"] if docker else [sys.executable, str(PROGRAM)]
    command = ["{port}"] if docker else [*program, "serve", "{port}"]
    if docker:
        base, _ = images.ensure(connect(), load_service("inference"))
        (folder / "Dockerfile").write_text(IMAGE.format(base=base))
        shutil.copy(PROGRAM, folder)
    words = json.dumps([*program, *setup.split()])
    filled = f"[setup]\ncommand = {words}\ntimeout_s = {timeout_s}" if setup else ""
    (folder / "service.toml").write_text(
        f"""
name = "{service}"
summary = "a shop"
command = {json.dumps(command)}
of_user = true
needs = ["db"]

[environment]
DATABASE_URL = "{{db.url}}"
NOTES = "{notes}"
NAME = "{name}"

[health]
http = "/health"

{filled}
"""
    )
    return service


def stack(name: str, kind: str, service: str) -> StackPlan:
    """Return a shop with a store of its own."""
    shop = Node(name=name, service=service, needs={"db": "db"})
    nodes = (store_node("db", kind, apart=name), shop)
    if kind == "postgres":
        return StackPlan(nodes=nodes, database="db", count="SELECT count(*) FROM items")
    return StackPlan(nodes=nodes)


def plan(kind: str, notes: Path, setup: str = "", seconds: float = 0.4, **given: Any) -> RunPlan:
    """Return the plan of a run of two equal shops, each with a store of its own."""

    def treatments(_: RunParameters) -> list[Treatment]:
        return [
            Treatment(
                name=f"variant={name}",
                label=name,
                levels={"variant": name},
                stack=stack(name, kind, describe(name, setup, notes)),
                workload=Workload(
                    request=Request(node=name, path="/"),
                    arrivals=ClosedLoop(users=2, duration_s=seconds, warmup_s=0.1),
                ),
                instruments=STANDARD,
            )
            for name in ("old", "new")
        ]

    def contrasts(_: RunParameters) -> list[Contrast]:
        sides = {"numerator": {"variant": "new"}, "denominator": {"variant": "old"}}
        return [Contrast(name="new against old", claim="new", response="throughput_rps", **sides)]

    experiment = Experiment(
        name="shops",
        title="Two shops",
        question="Is one slower?",
        parameters=RunParameters,
        treatments=treatments,
        contrasts=contrasts,
    )
    return experiment.plan(experiment.check({"blocks": 3, "seed": 5, **given}))
