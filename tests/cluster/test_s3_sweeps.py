"""A sweep over hosts that publish to S3, and what it leaves of its keys."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.hosts import Host, cluster
from tests.cluster.object_stores import BUCKET, ObjectStore, files, held, object_store
from tests.sweeps.swept import PERFLAB

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
URL = f"s3://{BUCKET}/sweeps"


@pytest.fixture
def moto(own_places: Path) -> Iterator[ObjectStore]:  # noqa: ARG001
    with object_store("process") as made:
        yield made


def test_a_sweep_publishes_to_s3_what_every_host_may_write_and_no_key_stays_anywhere(
    tmp_path: Path, moto: ObjectStore
) -> None:
    with cluster(tmp_path, [20]) as made:
        options = ("--scheduler", made.address, "--store", URL)
        bare = Host(made, "bare", AWS_SECRET_ACCESS_KEY="")
        told = [made.swept.done(*options, code=1)]
        assert f"  - bare: {URL}: the store cannot be used" in told[0]
        assert not (tmp_path / "sweeps").exists()
        bare.worker.terminate()
        bare.worker.wait(timeout=60)

        host = Host(made, "one")
        told.append(made.swept.done(*options, code=0))
        (run,) = host.runs()
        (row,) = made.swept.index().to_dict("records")
        assert row["run"] == f"{URL}/runs/{run.run_id}"
        assert row["executed"].startswith(f"{URL}/figures/{run.run_id}/")
        assert files().exists(row["executed"])
        assert files().exists(f"{row['run']}/published.json")
        assert f'href="{URL}/runs/{run.run_id}"' in (made.swept.folder / "index.html").read_text()

        for words in (["fetch", URL], ["runs", "--json"]):
            told.append(
                subprocess.run(
                    [PERFLAB, *words], env=made.swept.environment, capture_output=True, text=True,
                    check=True,
                ).stdout
            )  # fmt: skip
        (listed,) = json.loads(told[-1])
        assert (listed["run"], listed["state"]) == (run.run_id, "finished")

    written = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len(written) > 10
    assert [path for path in written if moto.secret.encode() in path.read_bytes()] == []
    assert not any(moto.secret.encode() in content for content in held(URL).values())
    assert moto.secret not in "".join(told)
