"""Options that commands share, and how an answer is printed: JSON when asked for, text otherwise."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click
import msgspec

from interlock.cli.config import Config, resolve
from interlock.core.values import Json

F = TypeVar("F", bound=Callable[..., Any])


def data_options(command: F) -> F:
    """Where the data lies, which project, which workflows."""
    for option in (
        click.option("--data-dir", metavar="PATH", help="Where sessions are kept."),
        click.option("--project", metavar="PATH", help="The project folder."),
        click.option("--workflows", metavar="[NAME=]PATH", multiple=True, help="More workflows; repeatable."),
    ):
        command = option(command)
    return command


def json_option(command: F) -> F:
    return click.option("--json", "as_json", is_flag=True, help="Print JSON.")(command)


def config_of(
    data_dir: str | None, project: str | None, workflows: tuple[str, ...] = (), **more: Any
) -> Config:
    """The effective configuration with these flags on top."""
    flags: dict[str, Any] = {
        "data-dir": data_dir,
        "project": project,
        "workflows": list(workflows) or None,
        **more,
    }
    return resolve({name: value for name, value in flags.items() if value is not None})


def print_json(value: Json) -> None:
    """Print JSON that people can read and scripts can parse."""
    click.echo(msgspec.json.format(msgspec.json.encode(value), indent=2).decode())
