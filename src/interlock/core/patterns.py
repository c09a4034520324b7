"""Author regexes in bounded time (rule 33): RE2 first, the `regex` module under a limit for the rest."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from typing import Literal, Protocol

from msgspec import Struct

SECONDS = 0.2
SECONDS_OF_A_CALL = 2.0
LONGEST_PATTERN = 2048

Engine = Literal["re2", "regex"]


class BadPattern(Exception):
    """The pattern is valid in neither engine, or there was no time to run it."""


class _Searches(Protocol):
    def search(self, text: str) -> object: ...


class Pattern(Struct, frozen=True):
    """A compiled pattern and the engine that runs it."""

    engine: Engine
    compiled: _Searches


class _Budget(Struct):
    """The time that all patterns of one call may take together."""

    seconds: float
    clock: Callable[[], float]
    spent: float = 0.0
    failed: list[str] = []

    @property
    def left(self) -> float:
        return self.seconds - self.spent


_budget: ContextVar[_Budget | None] = ContextVar("pattern_budget", default=None)


@contextmanager
def limited_time(seconds: float, clock: Callable[[], float]) -> Iterator[None]:
    """Let all patterns that are run inside share this many seconds; those that are left raise BadPattern."""
    token = _budget.set(_Budget(seconds, clock))
    try:
        yield
    finally:
        _budget.reset(token)


def matches(pattern: str, text: str) -> bool | None:
    """Say whether the pattern is found in the text, in any case; None if that cannot be evaluated."""
    try:
        return search(pattern, text, "i")
    except BadPattern as error:
        if (budget := _budget.get()) is not None:
            budget.failed.append(str(error))
        return None


def not_evaluated() -> list[str]:
    """Return why patterns of conditions could not be evaluated in the current call."""
    budget = _budget.get()
    return list(budget.failed) if budget is not None else []


def search(pattern: str, text: str, flags: str = "") -> bool:
    """Search the text, or say why that is impossible."""
    budget = _budget.get()
    if budget is None:
        return _search(pattern, text, flags, SECONDS)
    if budget.left <= 0:
        spent = f"the patterns of this call have used up their {budget.seconds:g} s"
        raise BadPattern(f"'{pattern}' was not evaluated: {spent}")
    begun = budget.clock()
    try:
        return _search(pattern, text, flags, min(SECONDS, budget.left))
    finally:
        budget.spent += budget.clock() - begun


def _search(pattern: str, text: str, flags: str, seconds: float) -> bool:
    ready = prepare(pattern, flags)
    if ready.engine == "re2":
        return ready.compiled.search(text) is not None
    import regex

    assert isinstance(ready.compiled, regex.Pattern)
    try:
        return ready.compiled.search(text, timeout=seconds) is not None
    except TimeoutError as error:
        raise BadPattern(f"'{pattern}' took longer than {seconds:.2g} s") from error


@lru_cache(maxsize=512)
def prepare(pattern: str, flags: str = "") -> Pattern:
    """Compile in RE2; in `regex` what RE2 cannot run, such as look-around."""
    if len(pattern) > LONGEST_PATTERN:
        raise BadPattern(f"the pattern is longer than {LONGEST_PATTERN} characters")
    known = "".join(letter for letter in "ims" if letter in flags)
    source = f"(?{known}){pattern}" if known else pattern
    import re2

    options = re2.Options()
    options.log_errors = False
    try:
        return Pattern("re2", re2.compile(source, options=options))
    except re2.error:
        return Pattern("regex", _compile_slow(source))


def _compile_slow(source: str) -> _Searches:
    import regex

    try:
        compiled: _Searches = regex.compile(source)
    except regex.error as error:
        raise BadPattern(str(error)) from error
    return compiled
