"""Nobody reads or changes what is not theirs, whatever they try; and a broken rule is found."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from hivemem.domain import access
from hivemem.domain.access import Principal, Scope
from tests.isolation.machine import Isolation

STEPS = 200


def explore(operations: int) -> None:
    """Run about so many operations. A failure is not made smaller: each step of it says what happened."""
    run_state_machine_as_test(
        Isolation,
        settings=settings(
            max_examples=max(1, operations // STEPS),
            stateful_step_count=STEPS,
            deadline=None,
            phases=[Phase.generate],
            database=None,
            suppress_health_check=list(HealthCheck),
        ),
    )


@pytest.mark.timeout(400)
def test_nobody_reads_or_changes_what_is_not_theirs() -> None:
    explore(2_000)


@pytest.mark.soak
@pytest.mark.timeout(4_000)
def test_nobody_reads_or_changes_what_is_not_theirs_for_long() -> None:
    explore(20_000)


def _reach_everything(account: Any, **facts: Any) -> Principal | None:
    """`principal_at` without the rule that a graph is its owner's or its members'."""
    if account.graph is None:
        return None
    found = access.Principal(
        user_id=account.user.user_id,
        graph_id=account.graph.graph_id,
        scope=facts.get("scope", Scope.OWNER),
        organization_id=account.graph.organization_id,
        organizations=account.memberships,
        frozen=account.graph.frozen_at is not None,
        write_organization_id=account.user.write_organization_id,
        may_administer=facts.get("may_administer", False),
        operator=account.user.operator,
    )
    return found


def _read_any_organization(self: Principal, organization_id: str | None) -> Principal:
    """`for_reading` that takes whatever organization is named."""
    if organization_id in (None, "none"):
        return self
    known = self.membership(organization_id)
    return replace(self, graph_id=known.graph_id if known else self.graph_id, scope=Scope.MEMBER)


def _write_without_asking(self: Principal) -> None:
    """`require_write` without any rule."""


def _write_at_home(self: Principal) -> Principal:
    """`for_writing` that forgets the write mode."""
    self.require_write()
    return self


GRAPHS = ("hivemem.service.access", "principal_at", _reach_everything)
WRITING = ("hivemem.domain.access.Principal", "require_write", _write_without_asking)
OTHERS = {
    "organizations": ("for_reading", _read_any_organization),
    "write mode": ("for_writing", _write_at_home),
    "administration": ("require_administration", _write_without_asking),
    "operator": ("require_operator", _write_without_asking),
}


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("where", "name", "broken"),
    [
        pytest.param(*GRAPHS, id="graphs"),
        pytest.param(*WRITING, id="writing"),
        *(
            pytest.param("hivemem.domain.access.Principal", *change, id=rule, marks=pytest.mark.soak)
            for rule, change in OTHERS.items()
        ),
    ],
)
def test_a_rule_that_is_broken_in_one_place_is_found(
    monkeypatch: pytest.MonkeyPatch, where: str, name: str, broken: Any
) -> None:
    monkeypatch.setattr(f"{where}.{name}", broken)
    with pytest.raises(AssertionError, match=r" -> |changed|zq"):
        explore(4_000)
