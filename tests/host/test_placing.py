"""The cores of each role."""

from __future__ import annotations

from pathlib import Path

import pytest

from perflab.host.placing import placement
from perflab.recordings import Run
from perflab.reports.methods import set_up


@pytest.mark.parametrize("count", [2, 3, 4, 6, 8, 32])
def test_client_and_services_never_share_a_core(count: int) -> None:
    places = placement(range(count))
    assert not set(places.client) & set(places.services)
    assert not set(places.client) & set(places.database)
    used = {
        core
        for role in ("services", "database", "link", "client")
        for core in getattr(places, role)
    }
    assert used <= set(range(count))


def test_roles_that_share_a_core_are_named() -> None:
    assert "share core 0" in placement([0, 1]).shared


def test_with_eight_cores_and_more_every_role_has_its_own() -> None:
    places = placement(range(10, 20))
    assert (places.services, places.database) == ((10, 11, 12, 13), (14, 15, 16))
    assert (places.link, places.client, places.sampler) == ((17,), (18,), (19,))
    assert places.shared == ""


def test_a_section_names_the_cores_of_what_was_bound_and_of_nothing_else() -> None:
    run = Run(Path(__file__).parents[1] / "data" / "recording_0_1")
    assert "kernel" in run.record.placement
    assert "; client: core 1; sampler: core 1 |" in set_up(run)
