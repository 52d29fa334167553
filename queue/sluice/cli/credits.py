"""``sluice credits [POLICY]``: balances of fair-share credits, as tables with bars or JSON.

Reads the status of CreditPolicies: balances right after the last settlement, and what moved since
each account joined. With ``--watch`` it prints again after each settlement and says what moved in
between. Registered by `sluice.cli.main`.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Annotated, Any, Final

import typer

from sluice.api import times
from sluice.api.errors import ConfigError, NotFound
from sluice.api.records_credit import UNIT_HOUR, AccountId, AccountState, CreditCheckpoint
from sluice.api.wire_credit import decode_checkpoint
from sluice.cli import target
from sluice.cli.get import list_all
from sluice.cli.tables import age, table
from sluice.clock import SystemClock
from sluice.kube.client import Client
from sluice.kube.resources import CREDIT_POLICIES

app = typer.Typer(add_completion=False)

Json = dict[str, Any]
_BAR_CELLS: Final = 12
_POLL_S: Final = 2.0
_HEADERS: Final = ("COHORT", "ACCOUNT", "BALANCE", "", "EARNED", "SPENT", "INFLOW", "UNPAID")


@app.command()
def credits_(
    policy: Annotated[
        str | None, typer.Argument(help="Name of a CreditPolicy.", show_default=False)
    ] = None,
    kubeconfig: target.Kubeconfig = None,
    context: target.Context = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the statuses as JSON.")] = False,
    watch: Annotated[
        bool, typer.Option("--watch", "-w", help="Print again after each settlement.")
    ] = False,
) -> None:
    """Show who has how many fair-share credits: tables with bars, amounts in unit-hours."""
    if as_json and watch:
        raise ConfigError("--json and --watch exclude each other")
    asyncio.run(_show(policy, kubeconfig, context, as_json=as_json, watch=watch))


async def _show(
    policy: str | None, kubeconfig: str | None, context: str | None, *, as_json: bool, watch: bool
) -> None:
    async with target.connected(kubeconfig, context) as (client, _):
        before: dict[str, CreditCheckpoint] = {}
        while True:
            found = await _policies(client, policy)
            if as_json:
                typer.echo(json.dumps([_plain(raw) for raw in found], indent=2))
                return
            now_ms = SystemClock().now_ms()
            changed = False
            for raw in found:
                name = raw["metadata"]["name"]
                saved = decode_checkpoint(raw.get("status") or {})
                if name in before and saved == before[name]:
                    continue
                changed = True
                typer.echo(describe(raw, saved, before.get(name), now_ms))
                if saved is not None:
                    before[name] = saved
            if not found:
                typer.echo("No CreditPolicies found.")
            if not watch:
                return
            if changed:
                typer.echo("")
            await asyncio.sleep(_POLL_S)


async def _policies(client: Client, name: str | None) -> list[Json]:
    """Return one policy or all, by name.

    Raises:
        ConfigError: There is none of that name, or the kind is not served.
    """
    try:
        found = await list_all(client, CREDIT_POLICIES)
    except NotFound as error:
        raise ConfigError(
            "the cluster has no CreditPolicies: apply manifests/crds to use credits"
        ) from error
    if name is None:
        return sorted(found, key=lambda raw: str(raw["metadata"]["name"]))
    chosen = [raw for raw in found if raw["metadata"]["name"] == name]
    if not chosen:
        raise ConfigError(f"there is no CreditPolicy {name!r}")
    return chosen


def _plain(raw: Json) -> Json:
    return {
        "name": raw["metadata"]["name"],
        "spec": raw.get("spec") or {},
        "status": raw.get("status") or {},
    }


def describe(
    raw: Json, saved: CreditCheckpoint | None, before: CreditCheckpoint | None, now_ms: int
) -> str:
    """Return one policy as text.

    Args:
        raw: The object.
        saved: Its ledger, None before the first settlement.
        before: The ledger as printed last, to say what moved since; None prints without.
        now_ms: Epoch milliseconds.
    """
    name, cohort = raw["metadata"]["name"], (raw.get("spec") or {}).get("cohortName", "")
    lines = [f"CreditPolicy {name}, cohort {cohort}: {_condition(raw)}"]
    if saved is None:
        return "\n".join([*lines, "No settlement yet."])
    passed = age((now_ms - saved.settled_ms) / 1000)
    lines.append(f"settled at {times.from_ms(saved.settled_ms)}, {passed} ago; unit-hours")
    headers = list(_HEADERS)
    earlier: Mapping[AccountId, AccountState] = {}
    if before is not None:
        headers.append("MOVED")
        earlier = {state.id: state for state in before.accounts}
    live = [state for state in saved.accounts if state.frozen_ms is None]
    scale = max((abs(state.balance) for state in live), default=0)
    cells = []
    for state in sorted(live, key=lambda s: (s.id.parent, -s.balance, s.id)):
        row = _row(state, scale)
        if before is not None:
            past = earlier.get(state.id)
            row.append("" if past is None else f"{hours(state.balance - past.balance, sign=True)}")
        cells.append(row)
    lines.append(table(headers, cells))
    lines.extend(
        f"frozen since {times.from_ms(state.frozen_ms)}: {state.id.kind} {state.id.name} in"
        f" {state.id.parent}, {hours(state.balance)}"
        for state in saved.accounts
        if state.frozen_ms is not None
    )
    return "\n".join(lines)


def _condition(raw: Json) -> str:
    for condition in (raw.get("status") or {}).get("conditions") or ():
        if condition["type"] == "Active":
            if condition["status"] == "True":
                return "active"
            return f"not active ({condition['reason']}): {condition['message']}"
    return "not looked at yet"


def _row(state: AccountState, scale: int) -> list[str]:
    kind = "" if state.id.kind == "ClusterQueue" else "Cohort "
    return [
        state.id.parent,
        f"{kind}{state.id.name}",
        hours(state.balance),
        bar(state.balance, scale),
        hours(state.earned),
        hours(state.spent),
        hours(state.inflow),
        hours(state.unpaid),
    ]


def hours(amount: int, *, sign: bool = False) -> str:
    """Return an amount of ledger units in unit-hours, for people."""
    value = amount / UNIT_HOUR
    text = f"{value:+.2f}" if sign else f"{value:.2f}"
    return "0" if text.strip("+-") == "0.00" else text


def bar(amount: int, scale: int) -> str:
    """Return a bar to the right of its middle for credits, to the left for debts."""
    length = 0 if scale == 0 else round(_BAR_CELLS * abs(amount) / scale)
    left = "#" * length if amount < 0 else ""
    right = "#" * length if amount > 0 else ""
    return f"{left:>{_BAR_CELLS}}|{right:<{_BAR_CELLS}}"
