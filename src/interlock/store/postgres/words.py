"""Words as the embedded store's index sees them, written as literals of PostgreSQL's text search.

PostgreSQL's own parsers depend on the server's configuration and locale; these words do not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from interlock.store.word_split import words_in

WEIGHTS: Mapping[str, str] = {"title": "A", "notes": "B", "workflows": "C"}
LONGEST_WORD = 200  # characters that are compared; PostgreSQL refuses words over 2 kB
LAST_POSITION = 16_383
MOST_POSITIONS = 255  # of one word
LARGEST_VECTOR = 900_000  # bytes; PostgreSQL refuses a vector over 1 MB


def vector(columns: Mapping[str, str]) -> str:
    """Write the words of some texts with their positions; a gap keeps phrases within one text."""
    places: dict[str, list[str]] = {}
    position, size = 0, 0
    for column, text in columns.items():
        for word in words_in(text):
            position = min(position + 1, LAST_POSITION)
            shown = word[:LONGEST_WORD]
            size += 4 if shown in places else len(shown.encode()) + 12
            if size > LARGEST_VECTOR:
                break
            known = places.setdefault(shown, [])
            if len(known) < MOST_POSITIONS:
                known.append(f"{position}{WEIGHTS[column]}")
        position = min(position + 1, LAST_POSITION)
    return " ".join(f"'{word}':{','.join(positions)}" for word, positions in places.items())


def query(words: Sequence[str], columns: Sequence[str]) -> str:
    """Write a query for all words in these columns; a word with several parts is a phrase. Empty: no word."""
    weights = "".join(WEIGHTS[column] for column in columns)
    phrases = [[part[:LONGEST_WORD] for part in words_in(word)] for word in words]
    return " & ".join(
        "(" + " <-> ".join(f"'{part}':{weights}" for part in parts) + ")" for parts in phrases if parts
    )
