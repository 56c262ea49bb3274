"""What a plan of a stack refuses before anything starts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perflab.errors import StackError
from perflab.host.placing import SERVICE_ROLES, placement
from perflab.stacks.hooks import CommandHook, HttpHook, SqlHook
from perflab.stacks.plan import Node, StackPlan, settle

POSTGRES = Node(name="db", service="postgres", placement="database")
ECHO = Node(name="echo", service="echo")


def test_a_placement_that_is_none_is_refused_with_the_nearest_one() -> None:
    with pytest.raises(StackError, match=r"'databse' is none .*did you mean 'database'\?"):
        Node(name="db", service="postgres", placement="databse")
    with pytest.raises(StackError, match="'client' is none of a service"):
        Node(name="db", service="postgres", placement="client")


@given(st.text())
def test_no_other_placement_than_those_of_services_gets_through(given_role: str) -> None:
    if given_role in SERVICE_ROLES:
        assert placement().cores_of(Node(name="a", service="b", placement=given_role).placement)
    else:
        with pytest.raises(StackError, match="placements: services, database, link"):
            Node(name="a", service="b", placement=given_role)


def test_a_hook_for_a_node_that_is_not_there_is_refused_with_the_nearest_one() -> None:
    with pytest.raises(StackError, match=r"seed \(POST /fill\).* no node 'ecko'.*'echo'"):
        StackPlan(nodes=(ECHO,), seed=(HttpHook(node="ecko", path="/fill"),))
    with pytest.raises(StackError, match="database: the stack has no node 'dv'"):
        StackPlan(nodes=(POSTGRES,), database="dv")


def test_a_count_must_say_where_its_number_is() -> None:
    with pytest.raises(StackError, match="say where in the answer the number is"):
        StackPlan(nodes=(ECHO,), count=(HttpHook(node="echo", method="GET", path="/stats"),))


def test_sql_is_refused_for_a_service_that_speaks_none() -> None:
    hook = SqlHook(node="echo", statements=("SELECT 1",))
    with pytest.raises(StackError, match="'echo' is a 'echo', which speaks no SQL"):
        settle({"it": StackPlan(nodes=(ECHO,), reset=(hook,))})
    settle({"it": StackPlan(nodes=(POSTGRES,), reset=(hook.model_copy(update={"node": "db"}),))})


def test_hooks_keep_their_kind_through_json() -> None:
    plan = StackPlan(
        nodes=(POSTGRES, ECHO),
        seed=(SqlHook(node="db", statements=("SELECT 1", "SELECT 2")),),
        reset=(CommandHook(node="echo", command=("{python}", "-V")),),
        count=(HttpHook(node="echo", method="GET", path="/stats", number="/answered"),),
    )
    assert StackPlan.model_validate_json(plan.model_dump_json()) == plan


def test_nodes_that_may_take_different_cpu_do_not_share_a_service() -> None:
    slow = StackPlan(nodes=(ECHO.model_copy(update={"cpus": 0.2}),))
    found = settle({"free": StackPlan(nodes=(ECHO,)), "slow": slow, "again": slow})
    assert [resident.cpus for resident in found.residents] == [None, 0.2]
    assert found.serving["slow"] == found.serving["again"] == {"echo": "echo-2"}
