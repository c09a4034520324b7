"""How answers look: aligned columns within the reader's width, colour only where a person reads.

Titles and notes come from agents, so nothing that could steer a terminal is ever printed.
"""

from __future__ import annotations

import os
import shutil
import sys
import textwrap
import time
from collections.abc import Sequence
from datetime import datetime
from typing import Literal, NoReturn
from unicodedata import category, east_asian_width

import click

from interlock.core.values import Json

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
    "in_progress": "accent",
    "blocked": "warn",
    "complete": "good",
    "complete_with_gaps": "warn",
    "damaged": "bad",
}
# No backgrounds and no pale tones, so that it reads on light and on dark terminals.
MARKDOWN = {
    "markdown.code": "cyan",
    "markdown.h1": "bold",
    "markdown.h2": "bold",
    "markdown.item.bullet": "none",
}
UNITS = ((86_400, "d"), (3_600, "h"), (60, "m"))
WIDEST = 100


def person_reads() -> bool:
    """Say whether the answer goes to a terminal."""
    return sys.stdout.isatty()


def width() -> int | None:
    """The columns to keep within; None where nobody set any, as in a pipe."""
    if person_reads() or os.environ.get("COLUMNS", "").isdigit():
        return min(shutil.get_terminal_size((80, 24)).columns, WIDEST)
    return None


def paint(text: str, tone: Tone) -> str:
    """Colour text where a person reads and has not set NO_COLOR."""
    if tone == "plain" or not person_reads() or os.environ.get("NO_COLOR"):
        return text
    return click.style(text, **TONES[tone])  # type: ignore[arg-type]


def say(text: str = "") -> None:
    """Print a line of the answer."""
    click.echo(text, color=None if os.environ.get("NO_COLOR") else person_reads())


def talk(text: str) -> None:
    """Print to stderr what is not the answer."""
    click.echo(text, err=True)


def stop(code: int, message: str) -> NoReturn:
    """End the command with one line that says what to do next."""
    talk(f"interlock: {message}")
    raise click.exceptions.Exit(code)


def line_of(text: str) -> str:
    """Text of an agent on one line, without anything that steers a terminal."""
    return " ".join(block_of(text).split())


def block_of(text: str) -> str:
    """Text of an agent, line breaks kept, without anything that steers a terminal."""
    return "".join(one for one in text if one in "\n\t" or category(one) not in ("Cc", "Cf", "Cs"))


def cells(text: str) -> int:
    """How many columns the text takes."""
    return sum(2 if east_asian_width(one) in "WF" else category(one) not in ("Mn", "Me") for one in text)


def fit(text: str, room: int | None) -> str:
    """Cut a line to the room there is."""
    if room is None or cells(text) <= room:
        return text
    kept = ""
    for one in text:
        if cells(kept + one) > room - 1:
            break
        kept += one
    return kept.rstrip() + "…"


def table(rows: Sequence[Sequence[str]], tones: Sequence[Sequence[Tone]]) -> None:
    """Print aligned columns, each row in its tones; the last column takes the room that is left."""
    if not rows:
        return
    widths = [max(cells(row[target]) for row in rows) for target in range(len(rows[0]) - 1)]
    limit = width()
    room = None if limit is None else max(limit - sum(widths) - 2 * len(widths), 12)
    for row, shades in zip(rows, tones, strict=True):
        padded = [one + " " * (size - cells(one)) for one, size in zip(row, widths, strict=False)]
        parts = [*padded, fit(row[-1], room)]
        say("  ".join(map(paint, parts, shades)).rstrip())


def paragraph(text: str, indent: str = "") -> str:
    """Wrap prose to the width, each line indented."""
    limit = width()
    lines = block_of(text).splitlines() or [""]
    if limit is None:
        return "\n".join(indent + line for line in lines)
    wrap = textwrap.TextWrapper(limit, initial_indent=indent, subsequent_indent=indent)
    return "\n".join(wrap.fill(line) if line.strip() else "" for line in lines)


def markdown(text: str) -> None:
    """Print Markdown: rendered for a person, as written for a program."""
    clean = block_of(text)
    if not person_reads():
        say(clean)
        return
    from rich.console import Console
    from rich.markdown import Markdown
    from rich.theme import Theme

    console = Console(width=width(), highlight=False, theme=Theme(MARKDOWN))
    console.print(Markdown(clean, code_theme="ansi_light"))


def json_lines(value: Json) -> None:
    """Print one value on one line, for those who follow."""
    import msgspec

    click.echo(msgspec.json.encode(value).decode())


def age(at: int, now: int | None = None) -> str:
    """How long ago, in one unit."""
    seconds = max(0, (now or time.time_ns() // 1_000_000) - at) // 1000
    return next((f"{seconds // size}{unit} ago" for size, unit in UNITS if seconds >= size), "just now")


def clock(at: int) -> str:
    """A moment in the reader's own time."""
    return datetime.fromtimestamp(at / 1000).strftime("%Y-%m-%d %H:%M:%S")


def words(status: str) -> str:
    return status.replace("_", " ")
