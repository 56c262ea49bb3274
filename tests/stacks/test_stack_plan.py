"""Errors of a stack's plan are found before anything starts."""

from __future__ import annotations

import pytest

from perflab.errors import StackError
from perflab.stacks.plan import Node, Seed, StackPlan, settle

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
