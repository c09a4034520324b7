"""Words as the embedded store's index splits and folds them, for those who compare words elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from unicodedata import category, normalize

DIACRITICS = range(0x300, 0x332)


def words_in(text: str) -> list[str]:
    """Split a text into letters and digits, without case and without the accents of Latin letters."""
    return "".join(_folded(text)).split()


def _folded(text: str) -> Iterator[str]:
    for char in text:
        if char.isascii():
            yield char.lower() if char.isalnum() else " "
        elif ord(char) not in DIACRITICS:
            kind = category(char)
            yield _letter(char) if kind[0] in "LN" or kind in ("Co", "Cn") else " "


def _letter(char: str) -> str:
    base = normalize("NFD", char)[0]
    if base.isascii():
        return base.lower()
    folded = char.casefold()
    return folded if len(folded) == 1 else char
