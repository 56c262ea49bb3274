"""Errors of a stack's plan and of its links are found before anything starts."""

from __future__ import annotations

import math

import pytest
from pydantic import ValidationError

from perflab.errors import StackError
from perflab.stacks.plan import Link, Node, Seed, StackPlan, settle
from perflab.stacks.spec import load_service

POSTGRES = Node(name="db", service="postgres", placement="database")
ECHO = Node(name="echo", service="echo")


def test_a_missing_node_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(StackError, match=r"seed: .* no node 'ecko'.*'echo'"):
        StackPlan(nodes=(ECHO,), seed=(Seed(node="ecko", command=("fill",)),))
    with pytest.raises(StackError, match="database: the stack has no node 'dv'"):
        StackPlan(nodes=(POSTGRES,), database="dv")


def test_statements_need_a_database_that_speaks_sql() -> None:
    with pytest.raises(StackError, match="name the database's node"):
        StackPlan(nodes=(POSTGRES,), count="SELECT 1")
    with pytest.raises(StackError, match="'echo' is service 'echo', which is no PostgreSQL"):
        settle({"it": StackPlan(nodes=(ECHO,), database="echo")})
    settle({"it": StackPlan(nodes=(POSTGRES,), database="db", reset=("SELECT 1",))})


def test_treatments_share_services_of_equal_start_settings_and_cpu_limits() -> None:
    slow = StackPlan(nodes=(ECHO.model_copy(update={"cpus": 0.2}),))
    named = StackPlan(nodes=(ECHO.model_copy(update={"settings": {"name": "other"}}),))
    plans = {"free": StackPlan(nodes=(ECHO,)), "slow": slow, "again": slow, "named": named}
    residency = settle(plans)
    assert [resident.cpus for resident in residency.residents] == [None, 0.2, None]
    assert residency.serving["named"] == {"echo": "echo-3"}
    assert residency.serving["slow"] == residency.serving["again"] == {"echo": "echo-2"}


@pytest.mark.parametrize("value", [0, 999, 1e10, math.nan, "fast", None], ids=str)
def test_a_wrong_limit_is_refused_before_anything_starts(value: object) -> None:
    with pytest.raises(StackError, match=r"bytes_per_s = .* must be .*, or 'unlimited'"):
        load_service("link").with_defaults({"bytes_per_s": value})  # type: ignore[dict-item]
    with pytest.raises(ValidationError, match="bytes_per_s"):
        Link.model_validate({"bytes_per_s": value})


def test_experiments_and_service_allow_the_same_limits() -> None:
    described = Link.model_json_schema()["properties"]
    for name, setting in load_service("link").settings.items():
        field = described[name]
        number = field["anyOf"][0] if "anyOf" in field else field
        assert (number["minimum"], number["maximum"]) == (setting.minimum, setting.maximum)
        assert field["default"] == setting.default
