"""What it costs to read the accounts of requests, and to profile, as ``perflab duel --why`` does.

Two equal copies of a service with PostgreSQL behind it get one user's requests, in random order;
beside one of them accounts are read, or its functions sampled. The rows are that one against the
other. ``benchmarks/results/reading.txt`` has the table of one run.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import numpy as np

from benchmarks import bench
from perflab.instruments import Accounts, Functions
from perflab.instruments.instrument import OfNode
from perflab.recordings import Run
from perflab.statistics.comparison import effect_of
from perflab.systems import experiment
from perflab.trials.arguments import order_of
from perflab.trials.client import conduct

SERVER = Path(__file__).parents[1] / "tests" / "systems" / "custom" / "asking_server.py"
START = f"{sys.executable} {SERVER}"
PLAIN, READ = "plain", "read"
COPIES = (PLAIN, READ)
SHOWN = ("mean_ms", "service_cpu_us_per_request", "client_cpu_us_per_request")
SERVICES = {"": "one statement", "loop": "20 statements"}
READING: dict[str, type[OfNode]] = {"accounts": Accounts, "profile": Functions}


def measured(reading: type[OfNode], planted: str, blocks: int, runs: Path) -> Run:
    """Measure a copy beside which something is read, and one without."""
    chosen = experiment("custom_service")
    parameters = {
        "variants": [f"{name}=command:{START} {planted}".strip() for name in COPIES],
        "needs": ["db=postgres"], "env": ["DATABASE_URL={db.url}"], "setup": f"{START} fill",
        "users": 1, "blocks": blocks, "duration_s": 2.0, "warmup_s": 0.5, "design": "trials",
    }  # fmt: skip
    order = order_of(chosen, chosen.check(parameters))
    plain, read = order.plan.treatments
    looks = *read.instruments, reading(node=READ)
    plan = order.plan.model_copy(
        update={"treatments": (plain, read.model_copy(update={"instruments": looks}))}
    )
    return Run(conduct(order.model_copy(update={"plan": plan, "runs": runs}), lambda _: None))


def ratios(run: Run) -> dict[str, str]:
    """Return what each response is beside the reading, as a ratio with its 95% interval."""
    trials = run.current_trials()
    trials = trials[trials["state"] != "failed"]
    found = {}
    for response in SHOWN:
        sides = trials.pivot_table(index="block", columns="treatment", values=response).dropna()
        one = effect_of((sides[f"variant={READ}"] / sides[f"variant={PLAIN}"]).apply(np.log))
        found[response] = f"{one.estimate:.3f} [{one.low:.3f}, {one.high:.3f}]"
    return found


def main() -> None:
    """Print a row for each service and reading."""
    given = bench.options(__doc__, blocks=(12, "blocks of each comparison"))
    rows: list[dict[str, object]] = []
    with tempfile.TemporaryDirectory() as folder:
        for name, reading in READING.items():
            for planted, service in SERVICES.items():
                run = measured(reading, planted, given.blocks, Path(folder))
                rows.append({"read": name, "a request has": service, **ratios(run)})
    bench.show(rows)


if __name__ == "__main__":
    main()
