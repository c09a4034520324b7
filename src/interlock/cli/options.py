"""The options and arguments that commands share, with their shell completion."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, get_args

import click
from click.shell_completion import CompletionItem

from interlock.cli.compose import ledger_of, library_of
from interlock.cli.config import Config, resolve
from interlock.cli.screen import line_of
from interlock.core.principals import LOCAL
from interlock.core.run.preferences import DecisionPolicy, Enforcement, Mode
from interlock.ledger.ledger import Ledger
from interlock.ledger.queries.run_lines import RunLines, RunsWanted, run_lines

F = TypeVar("F", bound=Callable[..., Any])
Command = Callable[..., None]

COMPLETIONS = 20

data_dir_option = click.option("--data-dir", metavar="PATH", help="Where Interlock keeps its data.")
project_option = click.option(
    "--project",
    metavar="PATH",
    help="The project folder; default: the nearest with .interlock, from here up.",
)
workflows_option = click.option(
    "--workflows", metavar="[NAME=]PATH", multiple=True, help="More workflows; repeatable."
)

store_option = click.option(
    "--store",
    metavar="URL",
    help="The database: sqlite:///PATH/TO/FILE.db or postgresql://…; default: in the data directory.",
)

EVERYBODY = "all"
owner_option = click.option(
    "--owner",
    metavar="NAME|all",
    default=LOCAL.name,
    help="Whose sessions: a principal's of `interlock serve`, or everybody's; default: your own.",
)

_TERMS = (
    click.option(
        "--mode", type=click.Choice(get_args(Mode)), help="What new runs stop for; see `interlock mode`."
    ),
    click.option(
        "--decisions",
        type=click.Choice(get_args(DecisionPolicy)),
        help="Who may answer gates. agent: the agent. auto: the client's form, else the agent."
        " client: the form or the user. user: only the user.",
    ),
    click.option(
        "--enforcement",
        type=click.Choice(get_args(Enforcement)),
        help="strict stops at gates; advisory warns about gates that were not opened.",
    ),
    click.option(
        "--min-response-seconds",
        type=float,
        metavar="N",
        help="Refuse an answer within N seconds after a gate opened.",
    ),
    click.option(
        "--console-url",
        metavar="URL",
        help="Where people reach the console, such as http://127.0.0.1:8750/console: clients that can open"
        " addresses get that of a question which only the user may answer.",
    ),
    click.option("--disable-tools", metavar="NAME", multiple=True, help="Leave out a tool; repeatable."),
)


def terms_options(command: F) -> F:
    """Add the options that say what the runs of a server stop for, and which tools it has."""
    for option in reversed(_TERMS):
        command = option(command)
    return command


def data_options(command: F) -> F:
    """Add --data-dir, --project and --workflows."""
    return workflows_option(project_option(data_dir_option(command)))


def json_option(command: F) -> F:
    return click.option("--json", "as_json", is_flag=True, help="Print JSON.")(command)


def config_of(
    data_dir: str | None = None,
    project: str | None = None,
    workflows: tuple[str, ...] = (),
    store: str | None = None,
) -> Config:
    """Resolve the configuration with these flags on top."""
    return resolve(flags_of(data_dir, project, workflows, store))


def flags_of(
    data_dir: str | None, project: str | None, workflows: tuple[str, ...], store: str | None = None
) -> dict[str, Any]:
    """Return the flags that were set, by the name of their setting."""
    flags = {"data-dir": data_dir, "project": project, "workflows": list(workflows) or None, "store": store}
    return {name: value for name, value in flags.items() if value is not None}


def with_config(command: Command) -> Command:
    """Replace the data options of a command by the configuration that they lead to."""

    @data_options
    @wraps(command)
    def with_resolved_config(
        data_dir: str | None,
        project: str | None,
        workflows: tuple[str, ...],
        *args: Any,
        store: str | None = None,
        **kwargs: Any,
    ) -> None:
        command(config_of(data_dir, project, workflows, store), *args, **kwargs)

    return with_resolved_config


def with_ledger(command: Command) -> Command:
    """Replace the data options of a command by the ledger that they lead to."""

    @wraps(command)
    def with_open_ledger(config: Config, *args: Any, **kwargs: Any) -> None:
        ledger = ledger_of(config)
        try:
            command(ledger, *args, **kwargs)
        finally:
            ledger.store.close()

    return with_config(store_option(with_open_ledger))


def owned_lines(ledger: Ledger, owner: str, limit: int, status: str = "", workflow: str = "") -> RunLines:
    """List the sessions of an owner, or of everybody."""
    wanted = RunsWanted(status, workflow, limit=limit, everybody=owner == EVERYBODY)
    return run_lines(ledger.of(owner, LOCAL.name), wanted)


def session_argument(command: Command) -> Command:
    return click.argument("ref", metavar="ID", shell_complete=_complete_session)(command)


def optional_session_argument(command: Command) -> Command:
    return click.argument("ref", metavar="[ID]", required=False, shell_complete=_complete_session)(command)


def _complete_session(ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    ledger = ledger_of(config_of(ctx.params.get("data_dir"), store=ctx.params.get("store")))
    sessions = owned_lines(ledger, ctx.params.get("owner") or LOCAL.name, COMPLETIONS).lines
    ledger.store.close()
    prefix = incomplete.removeprefix("sess_")
    return [
        CompletionItem(session.ref, help=line_of(session.title))
        for session in sessions
        if session.ref.startswith(prefix)
    ]


def workflow_argument(command: Command) -> Command:
    def complete(ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        workflows = library_of(config_of(ctx.params.get("data_dir"))).listing().entries
        return [
            CompletionItem(workflow.id, help=workflow.name)
            for workflow in workflows
            if workflow.id.startswith(incomplete)
        ]

    return click.argument("workflow_id", metavar="ID", shell_complete=complete)(command)


def paths_argument(command: Command) -> Command:
    """Take one or more `[NAME=]PATH`; NAME mounts the path under a namespace."""
    return click.argument("paths", metavar="[NAME=]PATH…", nargs=-1, required=True)(command)
