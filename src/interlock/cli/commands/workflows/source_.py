"""`interlock source`: add, list, update and remove git repositories of workflows."""

from __future__ import annotations

from pathlib import Path

import click
import msgspec

from interlock.authoring.library import Library, Source
from interlock.authoring.sources import git as repositories
from interlock.authoring.sources.git import GitError, Repository
from interlock.cli.options import config_of, data_dir_option, json_option
from interlock.cli.screen import (
    CHECK_FAILED,
    CONFLICT,
    NOT_FOUND,
    counted,
    inform,
    line_of,
    print_json,
    say,
    stop,
    table,
)

NONE = "No repository has been added. Add one with `interlock source add URL`."


@click.group()
def command() -> None:
    """Use workflows from git repositories."""


@command.command(epilog="Example: interlock source add https://example.org/team/flows.git --name team")
@click.argument("url")
@click.option("--name", help="The namespace of its workflows; default: the repository's name.")
@click.option("--ref", help="A branch or tag; default: the repository's own.")
@data_dir_option
def add(url: str, name: str | None, ref: str | None, data_dir: str | None) -> None:
    """Clone a repository and use its workflows."""
    folder = config_of(data_dir).folder
    repository = repositories.add_repository(folder, url, name, ref)
    if isinstance(repository, GitError):
        stop(CONFLICT if repository.taken else CHECK_FAILED, f"{repository.reason}.")
    _show(folder, repository, "added")


@command.command("list", epilog="Example: interlock source list --json")
@json_option
@data_dir_option
def list_(data_dir: str | None, as_json: bool) -> None:
    """List the repositories."""
    known = repositories.repositories(config_of(data_dir).folder)
    if as_json:
        print_json({"sources": msgspec.to_builtins(known)})
        return
    if not known:
        say(NONE)
    rows = [(source.name, source.commit[:12], source.ref or "-", line_of(source.url)) for source in known]
    table(rows, [("accent", "quiet", "plain", "plain")] * len(rows))


@command.command(epilog="Example: interlock source update team")
@click.argument("names", metavar="[NAME]…", nargs=-1)
@data_dir_option
def update(names: tuple[str, ...], data_dir: str | None) -> None:
    """Fetch the newest commit of the named repositories, or of all."""
    folder = config_of(data_dir).folder
    known = {repository.name: repository for repository in repositories.repositories(folder)}
    for name in names:
        if name not in known:
            stop(NOT_FOUND, f"There is no source '{name}'; see `interlock source list`.")
    if not known:
        inform(NONE)
    results = {name: repositories.update_repository(folder, known[name]) for name in names or known}
    for name, result in results.items():
        if isinstance(result, GitError):
            inform(f"{name} was not changed: {result.reason.rstrip('.')}.")
        else:
            _show(folder, result, "unchanged" if result.commit == known[name].commit else "updated")
    if any(isinstance(result, GitError) for result in results.values()):
        raise click.exceptions.Exit(CHECK_FAILED)


@command.command(epilog="Example: interlock source remove team")
@click.argument("name")
@data_dir_option
def remove(name: str, data_dir: str | None) -> None:
    """Remove a repository. Runs of its workflows continue from their pinned copies."""
    if not repositories.remove_repository(config_of(data_dir).folder, name):
        stop(NOT_FOUND, f"There is no source '{name}'; see `interlock source list`.")
    say(f"{name} removed")


def _show(folder: Path, repository: Repository, change: str) -> None:
    path = folder / "sources" / repository.name
    listing = Library([Source("git", path, repository.name)]).listing()
    broken = len({diagnostic.file for diagnostic in listing.diagnostics if diagnostic.severity == "error"})
    workflows = counted(len(listing.entries), "workflow")
    say(f"{repository.name} {change} at {repository.commit[:12]}: {workflows}")
    if broken:
        inform(
            f"{counted(broken, 'file')} cannot be used; see `interlock validate {repository.name}={path}`."
        )
