"""Compiles checks: commands that the server runs, or names of checks that a project defines."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import PurePosixPath

from msgspec.structs import replace

from interlock.authoring.compile.conditions import read_condition
from interlock.authoring.diagnostics.codes import Report
from interlock.authoring.filetypes.step_source import CheckSource
from interlock.authoring.filetypes.type_check import read_as
from interlock.authoring.text.locations import SourceLocation
from interlock.core.definition.checks import CommandCheck, Expectation
from interlock.core.definition.workflow import Step, Workflow, with_steps
from interlock.core.values import Json

_SHELL = re.compile(r"[|&;<>`]+|\$[({A-Za-z]")


def read_checks(
    sources: Sequence[str | CheckSource],
    at: SourceLocation,
    known: dict[str, CommandCheck],
    report: Report,
) -> tuple[CommandCheck, ...]:
    """Read the checks of one step or gate; `known` are those of the workflow so far."""
    checks = tuple(_read(source, at / index, report) for index, source in enumerate(sources))
    for index, check in enumerate(checks):
        if known.setdefault(check.id, check) != check or check in checks[:index]:
            report.add("IL520", f"the check '{check.id}' is defined twice", at / index)
    return checks


def read_definitions(raw: Json, at: SourceLocation, report: Report) -> dict[str, CommandCheck]:
    """Read what a project's checks run, by name: a command, or an object with the fields of a check."""
    if not isinstance(raw, Mapping):
        report.add("IL102", "expected the names of checks, each with its command", at)
        return {}
    definitions: dict[str, CommandCheck] = {}
    for name, value in raw.items():
        fields = {"run": value} if isinstance(value, str) else value
        if not isinstance(fields, Mapping):
            report.add("IL102", f"expected the command of the check '{name}'", at / name)
            continue
        source = read_as(CheckSource, {**fields, "id": name}, at / name, report)
        definitions |= {name: _read(source, at / name, report)} if source is not None else {}
    return definitions


def _read(source: str | CheckSource, at: SourceLocation, report: Report) -> CommandCheck:
    if isinstance(source, str):
        return CommandCheck(source)
    for reason, field in _wrong(source):
        report.add("IL520", reason, at / field)
    if words := [word for word in _words(source.run) if _SHELL.search(word)]:
        report.add("IL521", f"'{words[0]}' is passed to the command as it is: there is no shell", at / "run")
    expected = Expectation(source.expect.exit, source.expect.stdout, source.expect.files)
    condition = read_condition(source.when, at / "when", report)
    return CommandCheck(source.id, source.run, source.folder, source.timeout, expected, condition)


def _words(run: str) -> list[str]:
    try:
        return shlex.split(run)
    except ValueError:
        return []


def _wrong(source: CheckSource) -> Iterator[tuple[str, str]]:
    """Yield why a check could never run, and in which field."""
    if not _words(source.run) or "\0" in source.run:
        yield f"the command cannot be read: {source.run}", "run"
    for name, field in ((source.folder, "in"), *((file, "expect") for file in source.expect.files)):
        path = PurePosixPath(name)
        if path.is_absolute() or ".." in path.parts:
            yield f"'{name}' is not in the project folder", field


def defined(workflow: Workflow, definitions: Mapping[str, CommandCheck]) -> Workflow:
    """Return the workflow with the commands that a project gives to the checks it names."""
    if not any(check.id in definitions for check in workflow.checks() if not check.run):
        return workflow
    activities = tuple(
        replace(activity, items=with_steps(activity.items, partial(_with_commands, definitions=definitions)))
        for activity in workflow.activities
    )
    return replace(workflow, activities=activities)


def _with_commands(step: Step, definitions: Mapping[str, CommandCheck]) -> Step:
    checks = (check if check.run else definitions.get(check.id, check) for check in step.checks)
    return replace(step, checks=tuple(checks))
