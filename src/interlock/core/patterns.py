"""Author regexes in bounded time (rule 33): RE2 first, the `regex` module under a limit for the rest."""

from __future__ import annotations

from functools import lru_cache
from typing import Literal, Protocol

from msgspec import Struct

SECONDS = 0.2
LONGEST_PATTERN = 2048

Engine = Literal["re2", "regex"]


class BadPattern(Exception):
    """The pattern is valid in neither engine, or it ran out of time."""


class _Searches(Protocol):
    def search(self, text: str) -> object: ...


class Pattern(Struct, frozen=True):
    """A compiled pattern and the engine that runs it."""

    engine: Engine
    compiled: _Searches


def matches(pattern: str, text: str, *, flags: str = "", ignore_case: bool = False) -> bool:
    """Say whether the pattern is found in the text; an invalid or too slow one, which lint names, is not."""
    letters = flags + ("i" if ignore_case else "")
    try:
        return search(pattern, text, letters)
    except BadPattern:
        return False


def search(pattern: str, text: str, flags: str = "") -> bool:
    """Search the text, or say why that is impossible."""
    ready = prepare(pattern, flags)
    if ready.engine == "re2":
        return ready.compiled.search(text) is not None
    return _search_slowly(pattern, ready, text)


@lru_cache(maxsize=512)
def prepare(pattern: str, flags: str = "") -> Pattern:
    """Compile in RE2; in `regex` what RE2 cannot run, such as look-around."""
    if len(pattern) > LONGEST_PATTERN:
        raise BadPattern(f"the pattern is longer than {LONGEST_PATTERN} characters")
    source = _with_flags(pattern, flags)
    import re2

    options = re2.Options()
    options.log_errors = False
    try:
        return Pattern("re2", re2.compile(source, options=options))
    except re2.error:
        return Pattern("regex", _compile_slow(source))


def _with_flags(pattern: str, flags: str) -> str:
    known = "".join(letter for letter in "ims" if letter in flags)
    return f"(?{known}){pattern}" if known else pattern


def _compile_slow(source: str) -> _Searches:
    import regex

    try:
        compiled: _Searches = regex.compile(source)
    except regex.error as error:
        raise BadPattern(str(error)) from error
    return compiled


def _search_slowly(pattern: str, ready: Pattern, text: str) -> bool:
    import regex

    assert isinstance(ready.compiled, regex.Pattern)
    try:
        return ready.compiled.search(text, timeout=SECONDS) is not None
    except TimeoutError as error:
        raise BadPattern(f"{pattern!r} took longer than {SECONDS} s") from error
