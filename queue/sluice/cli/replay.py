"""``sluice replay --check FILE...``: recorded decisions through the real engine.

Prints, per diverging scenario, what was expected, what was decided at the first divergence and why;
then one line per file and a total. The command is registered by `sluice.cli.main`.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from sluice.simulator import replay

MISMATCH_EXIT_CODE = 1


def replay_command(
    files: Annotated[
        list[Path],
        typer.Argument(help="Recorded scenarios, plain JSON or gzipped.", show_default=False),
    ],
    check: Annotated[
        bool,
        typer.Option("--check", help="Exit with 1 unless every decision matches at both levels."),
    ] = False,
) -> None:
    """Replay recorded scheduling decisions and compare them with the engine's."""
    total = [0, 0, 0]
    for path in files:
        counts = [0, 0, 0]
        for recorded in replay.load(path):
            outcome = replay.check(recorded)
            counts[0] += outcome.level_1 is None
            counts[1] += outcome.level_2 is None
            counts[2] += 1
            for line in describe(outcome):
                typer.echo(line)
        typer.echo(summary(path.name.split(".")[0], counts))
        total = [a + b for a, b in zip(total, counts, strict=True)]
    typer.echo(summary("total", total))
    if check and (total[0] < total[2] or total[1] < total[2]):
        raise typer.Exit(MISMATCH_EXIT_CODE)


def summary(name: str, counts: list[int]) -> str:
    """Return the line of a file: scenarios that match at level 1 and 2, of how many."""
    return f"{name}: level 1 {counts[0]}/{counts[2]}, level 2 {counts[1]}/{counts[2]}"


def describe(outcome: replay.Outcome) -> Iterator[str]:
    """Yield the lines that tell where and why a scenario diverges; nothing when it matches."""
    divergence = outcome.level_1 or outcome.level_2
    if divergence is None:
        return
    yield f"{outcome.name}: step {divergence.step} differs at level {divergence.level}"
    yield f"  expected: {json.dumps(divergence.expected, sort_keys=True)}"
    yield f"  decided:  {json.dumps(divergence.decided, sort_keys=True)}"
    for line in divergence.why:
        yield f"  {line}"
