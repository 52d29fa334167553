"""The program ``sluice``, also ``kubectl sluice``: commands, exit codes.

Each command lives in a module of its own, imported only when it is called, so that ``sluice get``
does not pay for the servers. Such a module has ``app``, a Typer application with one command, or
just the function ``<name>_command``.

Exit codes: 0 done, 1 failed, 2 wrong usage, settings or files, 130 interrupted.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

import typer
from typer.core import TyperGroup

from sluice.api.errors import ConfigError, KubeError, SluiceError

COMMANDS: Final = {
    "run": "sluice.cli.run",
    "manager": "sluice.cli.manager",
    "webhook": "sluice.cli.webhook",
    "get": "sluice.cli.get",
    "stop": "sluice.cli.stop",
    "resume": "sluice.cli.resume",
    "up": "sluice.cli.up",
    "demo": "sluice.cli.demo",
    "replay": "sluice.cli.replay",
    "simulate": "sluice.cli.simulate",
    "credits": "sluice.cli.credits",
    "version": "sluice.cli.version",
}
"""Module of each command, in the order of the help page."""

EXIT_FAILED: Final = 1
EXIT_USAGE: Final = 2
EXIT_INTERRUPTED: Final = 130


class LazyGroup(TyperGroup):
    """The group of commands, which imports a command's module when it is needed."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names of all commands."""
        del ctx
        return [name for name, module in COMMANDS.items() if find_spec(module) is not None]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return a command, None when there is no such."""
        del ctx
        module = COMMANDS.get(cmd_name)
        if module is None or find_spec(module) is None:
            return None
        command = typer.main.get_command(_application(cmd_name, module))
        command.name = cmd_name
        return command


def _application(name: str, module: str) -> typer.Typer:
    """Return a command's application; without its optional packages, one that says so."""
    try:
        found = import_module(module)
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("sluice"):
            raise
        return _lacking(name, error.name or "a package")
    application: typer.Typer | None = getattr(found, "app", None)
    if application is None:
        application = typer.Typer(add_completion=False)
        application.command()(getattr(found, f"{name}_command"))
    return application


def _lacking(name: str, package: str) -> typer.Typer:
    application = typer.Typer(add_completion=False)
    text = f"Needs the package {package}: pip install 'sluicegate[local]'"

    @application.command(help=text, context_settings={"ignore_unknown_options": True})
    def lacking(arguments: list[str] | None = None) -> None:
        del arguments
        raise ConfigError(f"sluice {name}: {text[0].lower()}{text[1:]}")

    return application


app = typer.Typer(
    cls=LazyGroup,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback()
def _root() -> None:
    """Job queue for Kubernetes that speaks Kueue's API."""


def execute(arguments: Sequence[str], *, program: str = "sluice") -> int:
    """Run a command line and return its exit code; errors are one line on standard error."""
    command: Any = typer.main.get_command(app)
    try:
        command.main(args=list(arguments), prog_name=program, standalone_mode=True)
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else EXIT_FAILED
    except ConfigError as error:
        return _fail(str(error), EXIT_USAGE)
    except KubeError as error:
        return _fail(str(error), EXIT_FAILED)
    except SluiceError as error:
        return _fail(f"{type(error).__name__}: {error}", EXIT_FAILED)
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    return 0


def _fail(message: str, code: int) -> int:
    line = " ".join(message.split())
    print(f"error: {line}", file=sys.stderr)
    return code


def main() -> None:
    """Entry point of the console scripts ``sluice`` and ``kubectl-sluice``."""
    is_plugin = Path(sys.argv[0]).name.startswith("kubectl-")
    sys.exit(execute(sys.argv[1:], program="kubectl sluice" if is_plugin else "sluice"))


if __name__ == "__main__":
    main()
