"""Says an error of YAML's syntax in an author's words, with what to write instead."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from interlock.authoring.text.locations import Location, Unreadable

if TYPE_CHECKING:
    from yaml import MarkedYAMLError

QUOTE = 'put the text in quotes: "…"'
ALIGN = "give every entry of one list or object the same indentation"


class SyntaxHelp(Struct, frozen=True):
    """A part of the parser's message, what it means, what to do, and whether it is about the opening mark."""

    problem: str
    message: str
    next_action: str
    at_opening: bool = False


HELP = (
    SyntaxHelp("mapping values are not allowed", "a second ':' in one line, or a wrong indentation", QUOTE),
    SyntaxHelp("violates indentation", "a tab in the indentation", "indent with spaces"),
    SyntaxHelp("cannot start any token", "a text cannot begin with this character", QUOTE),
    SyntaxHelp("unexpected end of stream", "a quote that is not closed", "close the quote", at_opening=True),
    SyntaxHelp(
        "',' or ']'", "a '[' that is not closed", "close the bracket, or add a comma", at_opening=True
    ),
    SyntaxHelp(
        "',' or '}'", "a '{' that is not closed", "close the bracket, or add a comma", at_opening=True
    ),
    SyntaxHelp("expected '-' indicator", "this line does not continue the list above it", ALIGN),
    SyntaxHelp(
        "did not find expected key",
        "this does not continue the object above it",
        f"{ALIGN}; double a quote inside a quoted text",
    ),
    SyntaxHelp(
        "could not find expected ':'",
        "this line is neither a field nor part of a text",
        "add ':' after the name, or indent the line under the text that it belongs to",
        at_opening=True,
    ),
    SyntaxHelp(
        "block sequence entries are not allowed", "a list cannot begin here", "begin it on a new line"
    ),
    SyntaxHelp(
        "hexdecimal number",
        "'\\' begins an escape in double quotes",
        "use single quotes, or double the '\\'",
    ),
    SyntaxHelp(
        "unknown escape character",
        "'\\' begins an escape in double quotes",
        "use single quotes, or double the '\\'",
    ),
    SyntaxHelp(
        "expected node content", "a value is missing or wrong here", "write a value, or close the bracket"
    ),
    SyntaxHelp("expected alphabetic or numeric", "a text cannot begin with '*' or '&'", QUOTE),
    SyntaxHelp("expected comment or line break", "only a line break may follow '|' or '>'", QUOTE),
)


def syntax_error(text: str, error: MarkedYAMLError) -> Unreadable:
    """Return what a parser's error means, where it begins, and what to do about it."""
    problem, mark = error.problem or "not valid YAML", error.problem_mark
    if mark is not None and text[mark.index : mark.index + 1] == "\t":
        problem = "violates indentation"  # the parser says so only of some tabs
    known = next((entry for entry in HELP if entry.problem in problem), SyntaxHelp("", problem, ""))
    if known.at_opening and error.context_mark is not None:
        mark = error.context_mark
    location = Location(mark.line + 1, mark.column + 1) if mark else Location()
    return Unreadable("IL004", known.message, location, known.next_action)
