"""`interlock source`: workflows from git repositories, added, listed, updated and removed by a person."""

from __future__ import annotations

from pathlib import Path

import click
import msgspec

from interlock.authoring.library import Library, Source
from interlock.authoring.sources import git as repositories
from interlock.authoring.sources.git import GitError, Repository
from interlock.cli.exits import CHECK_FAILED, CONFLICT, NOT_FOUND
from interlock.cli.options import config_of, json_option, print_json
from interlock.cli.screen import line_of, say, stop, table, talk

data_option = click.option("--data-dir", metavar="PATH", help="Where sessions are kept.")


@click.group()
def command() -> None:
    """Use workflows from git repositories."""


@command.command(epilog="Example: interlock source add https://example.org/team/flows.git --name team")
@click.argument("url")
@click.option("--name", help="The namespace to mount it under; by default the repository's name.")
@click.option("--ref", help="A branch or tag; by default the repository's own.")
@data_option
def add(url: str, name: str | None, ref: str | None, data_dir: str | None) -> None:
    """Clone a repository, and offer its workflows under a name."""
    folder = _folder(data_dir)
    added = repositories.add(folder, url, name, ref)
    if isinstance(added, GitError):
        stop(CONFLICT if added.taken else CHECK_FAILED, f"{added.reason}.")
    _tell(folder, added, "added")


@command.command("list", epilog="Example: interlock source list --json")
@data_option
@json_option
def list_(data_dir: str | None, as_json: bool) -> None:
    """List the repositories."""
    found = repositories.repositories(_folder(data_dir))
    if as_json:
        print_json({"sources": msgspec.to_builtins(found)})
        return
    if not found:
        say("No sources have been added.")
    rows = [(one.name, one.commit[:12], one.ref or "-", line_of(one.url)) for one in found]
    table(rows, [("accent", "quiet", "plain", "plain")] * len(rows))


@command.command(epilog="Example: interlock source update team")
@click.argument("names", metavar="[NAME]…", nargs=-1)
@data_option
def update(names: tuple[str, ...], data_dir: str | None) -> None:
    """Fetch repositories anew: those named, or all."""
    folder = _folder(data_dir)
    known = {one.name: one for one in repositories.repositories(folder)}
    for name in names:
        if name not in known:
            stop(NOT_FOUND, f"there is no source '{name}'; see `interlock source list`.")
    results = {name: repositories.update(folder, known[name]) for name in names or known}
    for name, now in results.items():
        if isinstance(now, GitError):
            talk(f"{name}: {now.reason}; it stays as it was.")
        else:
            _tell(folder, now, "unchanged" if now.commit == known[name].commit else "updated")
    if any(isinstance(now, GitError) for now in results.values()):
        raise click.exceptions.Exit(CHECK_FAILED)


@command.command(epilog="Example: interlock source remove team")
@click.argument("name")
@data_option
def remove(name: str, data_dir: str | None) -> None:
    """Remove a repository; runs of its workflows go on from their pinned copies."""
    if not repositories.remove(_folder(data_dir), name):
        stop(NOT_FOUND, f"there is no source '{name}'; see `interlock source list`.")
    say(f"{name} removed")


def _folder(data_dir: str | None) -> Path:
    return config_of(data_dir, None).folder


def _tell(data: Path, one: Repository, done: str) -> None:
    listing = Library([Source("git", data / "sources" / one.name, one.name)]).listing()
    broken = len({diagnostic.file for diagnostic in listing.diagnostics if diagnostic.severity == "error"})
    count = len(listing.entries)
    say(f"{one.name} {done} at {one.commit[:12]}: {count} workflow{'s' * (count != 1)}")
    if broken:
        path = data / "sources" / one.name
        talk(f"{broken} cannot be used; see `interlock validate {one.name}={path}`.")
