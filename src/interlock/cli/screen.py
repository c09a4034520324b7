"""What commands print and how they end: results to stdout, messages to stderr, an exit code for scripts.

Titles and notes come from agents, so whatever is printed loses its control characters, but for our colours.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
import textwrap
import time
from collections.abc import Sequence
from datetime import datetime
from typing import Literal, NoReturn
from unicodedata import category, east_asian_width

import click
import msgspec

from interlock.core.definition.quoting import UNSEEN
from interlock.core.values import Json

OK = 0
CHECK_FAILED = 1
USAGE = 2
NOT_FOUND = 3
WAITS = 4
CONFLICT = 5

Tone = Literal["strong", "quiet", "good", "warn", "bad", "accent", "plain"]

TONES: dict[Tone, dict[str, bool | str]] = {
    "strong": {"bold": True},
    "quiet": {"dim": True},
    "good": {"fg": "green"},
    "warn": {"fg": "yellow"},
    "bad": {"fg": "red"},
    "accent": {"fg": "cyan"},
    "plain": {},
}
STATUS_TONES: dict[str, Tone] = {
    "waiting": "warn",
    "in_progress": "accent",
    "blocked": "warn",
    "stale": "quiet",
    "complete": "good",
    "complete_with_gaps": "warn",
    "abandoned": "quiet",
    "damaged": "bad",
}
COLOUR = re.compile("(\x1b\\[(?:0|1|2|31|32|33|36)m)")  # what TONES become
# No backgrounds and no pale colours: they must be readable on light and on dark terminals.
MARKDOWN = {
    "markdown.code": "cyan",
    "markdown.h1": "bold",
    "markdown.h2": "bold",
    "markdown.item.bullet": "none",
}
UNITS = ((86_400, "d"), (3_600, "h"), (60, "m"))
WIDEST_PROSE = 100
NARROWEST_COLUMN = 12


def person_reads() -> bool:
    """Say whether stdout is a terminal."""
    return sys.stdout.isatty()


def width() -> int | None:
    """Return the number of columns to stay within, or None for a pipe."""
    if person_reads() or os.environ.get("COLUMNS", "").isdigit():
        return shutil.get_terminal_size((80, 24)).columns
    return None


def _prose_width() -> int | None:
    """Return the columns for text that wraps: long lines are hard to read."""
    limit = width()
    return None if limit is None else min(limit, WIDEST_PROSE)


def room_after(taken: int) -> int | None:
    """Return the columns that are left of a line after the first `taken`, or None for a pipe."""
    limit = width()
    return None if limit is None else max(limit - taken, NARROWEST_COLUMN)


def paint(text: str, tone: Tone) -> str:
    """Colour text if stdout is a terminal and NO_COLOR is not set."""
    if tone == "plain" or not person_reads() or os.environ.get("NO_COLOR"):
        return text
    return click.style(text, **TONES[tone])  # type: ignore[arg-type]


def say(text: str = "") -> None:
    """Print a line of the result to stdout."""
    click.echo(_harmless(text), color=None if os.environ.get("NO_COLOR") else person_reads())


def inform(text: str) -> None:
    """Print a message to stderr."""
    click.echo(_harmless(text), err=True)


def _harmless(text: str) -> str:
    """Return text without control characters, except for the codes that `paint` adds."""
    return "".join(part if COLOUR.fullmatch(part) else block_of(part) for part in COLOUR.split(text) if part)


def stop(code: int, message: str) -> NoReturn:
    """End the command with a one-line message that says what to do next."""
    inform(f"interlock: {message}")
    raise click.exceptions.Exit(code)


def print_json(value: Json) -> None:
    """Print JSON, indented."""
    click.echo(_escaped(msgspec.json.format(msgspec.json.encode(value), indent=2).decode()))


def print_json_line(value: Json) -> None:
    """Print JSON on one line, for output that is followed."""
    click.echo(_escaped(msgspec.json.encode(value).decode()))


def _escaped(text: str) -> str:
    """Write the control and format characters of a JSON text as escapes, so that no terminal obeys them."""
    if text.isascii() and "\x7f" not in text:
        return text
    return "".join(
        char if char < "\x7f" or category(char) not in UNSEEN else json.dumps(char)[1:-1] for char in text
    ).replace("\x7f", "\\u007f")


def line_of(text: str) -> str:
    """Return text on one line, without control characters."""
    return " ".join(block_of(text).split())


def block_of(text: str) -> str:
    """Return text with its line breaks, without other control characters."""
    return "".join(char for char in text if char in "\n\t" or category(char) not in UNSEEN)


def cells(text: str) -> int:
    """Count the terminal columns that the text takes."""
    return sum(2 if east_asian_width(char) in "WF" else category(char) not in ("Mn", "Me") for char in text)


def fit(text: str, room: int | None) -> str:
    """Shorten a line to the columns available."""
    if room is None or cells(text) <= room:
        return text
    kept = ""
    for char in text:
        if cells(kept + char) > room - 1:
            break
        kept += char
    return kept.rstrip() + "…"


def table(rows: Sequence[Sequence[str]], tones: Sequence[Sequence[Tone]]) -> None:
    """Print aligned columns; the last column is shortened to the width."""
    if not rows:
        return
    widths = [max(cells(row[column]) for row in rows) for column in range(len(rows[0]) - 1)]
    room = room_after(sum(widths) + 2 * len(widths))
    for row, row_tones in zip(rows, tones, strict=True):
        padded = [cell + " " * (size - cells(cell)) for cell, size in zip(row, widths, strict=False)]
        parts = [*padded, fit(row[-1], room)]
        say("  ".join(map(paint, parts, row_tones)).rstrip())


def paragraph(text: str, indent: str = "") -> str:
    """Wrap prose to the width, with every line indented."""
    limit = _prose_width()
    lines = block_of(text).splitlines() or [""]
    if limit is None:
        return "\n".join(indent + line for line in lines)
    wrap = textwrap.TextWrapper(limit, initial_indent=indent, subsequent_indent=indent)
    return "\n".join(wrap.fill(line) if line.strip() else "" for line in lines)


def markdown(text: str) -> None:
    """Print Markdown: rendered on a terminal, as written elsewhere."""
    clean = block_of(text)
    if not person_reads():
        say(clean)
        return
    from rich.console import Console
    from rich.markdown import Markdown
    from rich.theme import Theme

    console = Console(width=_prose_width(), highlight=False, theme=Theme(MARKDOWN))
    console.print(Markdown(clean, code_theme="ansi_light"))


def age(at: int, now: int | None = None) -> str:
    """Say how long ago a time was, in one unit."""
    seconds = max(0, (now or time.time_ns() // 1_000_000) - at) // 1000
    return next((f"{seconds // size}{unit} ago" for size, unit in UNITS if seconds >= size), "just now")


def clock(at: int) -> str:
    """Format a time in the local time zone."""
    return datetime.fromtimestamp(at / 1000).strftime("%Y-%m-%d %H:%M:%S")


def status_words(status: str) -> str:
    """Write a status as words."""
    return status.replace("_", " ")


def counted(number: int, noun: str) -> str:
    """Write a number with its noun, in the plural where needed."""
    return f"{number} {noun}{'s' * (number != 1)}"
