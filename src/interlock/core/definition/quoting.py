"""Values in a text that the user reads: an agent wrote them, so they are marked and cannot pass for the text.

A value stands between « and », on one line. A line break is shown as ⏎, because a plain space would make one
sentence of two lines; what cannot be seen or steers a screen is shown as �.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from unicodedata import category

MOST_OF_VALUE = 1_000
MOST_OF_VALUES = 4_000
MOST_BARE = 40
MOST_STACKED = 3
UNSEEN = ("Cc", "Cf", "Cs")  # categories of characters that steer a screen or cannot be seen
STACKED = ("Mn", "Me")  # marks without a width of their own, drawn over the lines around if there are many
LOOKALIKES = {"«": "‹", "»": "›", "≪": "‹", "≫": "›"}

_BREAK = re.compile(r"\s*[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]\s*")
# Without ink: what Unicode says not to draw, blank letters and symbols, and all spaces but the plain one.
_BLANK = re.compile(
    r"[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2065\u2800\u3164\ufe00-\ufe0f\uffa0\ufff0-\ufff8"
    r"\U000e0000-\U000e0fff]|[^\S \t]"
)
_BARE = re.compile(r"-?[0-9]+(?:[.:-][0-9]+)*(?:[eE][+-]?[0-9]+)?|true|false|null")


def quoted(text: str, most: int = MOST_OF_VALUE) -> str:
    """Mark a value, and count what is cut off after the marks; what can only be a value stays bare.

    That is a number, a date, a version, true, false or null.
    """
    if len(text) <= MOST_BARE and _BARE.fullmatch(text):
        return text
    line, cut = on_one_line(text, most), len(text) - most
    return f"«{line}…» ({cut:,} more characters)" if cut > 0 else f"«{line}»"


def on_one_line(text: str, most: int = MOST_OF_VALUE) -> str:
    """Return a text on one line, without what cannot be seen, and without what is beyond its limit."""
    return " ".join(_cleaned(_BREAK.sub(" ⏎ ", text[:most])).split())


def visible(line: str) -> str:
    """Return a line as it is, without what cannot be seen or steers a screen."""
    return _cleaned(line.expandtabs(4))


def spelled(text: str) -> str:
    """Write all but printable ASCII as escapes: it may be invisible, or look like other letters."""
    return "".join(char if " " <= char <= "~" else char.encode("unicode_escape").decode() for char in text)


def most_of_each(values: int) -> int:
    """Return how many characters each of the values in one text may have: they share what a form can show."""
    return min(MOST_OF_VALUE, MOST_OF_VALUES // max(values, 1))


def _cleaned(text: str) -> str:
    if text.isascii() and text.isprintable():  # as most values are: nothing to look at in each character
        return text
    return "".join(_visible(text))


def _visible(text: str) -> Iterator[str]:
    stacked = 0
    for char in text:
        kind = category(char)
        stacked = stacked + 1 if kind in STACKED else 0
        if kind in UNSEEN or _BLANK.match(char):
            yield "�"
        elif stacked <= MOST_STACKED:
            yield LOOKALIKES.get(char, char)
