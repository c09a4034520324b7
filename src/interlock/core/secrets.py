"""What looks like a secret, and is therefore never taken as an answer: everything recorded can be read later.

Well-known formats of keys are recognised anywhere; other texts only where a word before them says what they
are, so that a digest or an identifier can be an answer.
"""

from __future__ import annotations

import re
from collections import Counter
from math import log2
from unicodedata import category, normalize

LONGEST_SEARCHED = 100_000
LEAST_LENGTH = 10
LEAST_ENTROPY = 3.0  # bits for each character; words and names stay below it

FORMATS = {
    "a token of Interlock": r"\bilk_[0-9a-f]{64}\b|/answer/[\w-]{60,}",
    "a private key": r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY",
    "an AWS access key": r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b",
    "a GitHub token": r"\b(?:gh[pousr]_[A-Za-z0-9]{30,}|github_pat_[A-Za-z0-9_]{22,})",
    "a GitLab token": r"\bglpat-[\w-]{20,}",
    "a Slack token": r"\bxox[abeoprs]-[\w-]{10,}|\bhooks\.slack\.com/services/\w+/\w+/\w+",
    "an API key": r"\b(?:sk|pk|rk)[-_](?:ant-|proj-|live_|test_)?[A-Za-z0-9_-]{20,}",
    "a Google API key": r"\bAIza[\w-]{35}",
    "a package registry's token": r"\b(?:npm_[A-Za-z0-9]{36}|pypi-[\w-]{30,})",
    "a JSON web token": r"\beyJ[\w-]{10,}\.eyJ[\w-]{10,}\.[\w-]{10,}",
    "an address with a password": r"\b[a-z][a-z0-9+.-]{1,20}://[^\s/:@]{1,100}:[^\s/@]{3,200}@",
}
KNOWN = re.compile("|".join(f"({pattern})" for pattern in FORMATS.values()))
NAMED = re.compile(
    r"\b(password|passwd|passphrase|pwd|secret|token|api[ _-]?key|access[ _-]?key|credentials?|bearer)\b"
    r"(?:\s{0,3}(?:is|=|:)\s{0,3}|\s{1,3})[\"'`]?([^\s\"'`]{6,500})",
    re.IGNORECASE,
)
PLACEHOLDER = re.compile(r"[<${\[(*].*|[a-z]+://[^@]*|[./~].*")


def secret_in(text: str) -> str | None:
    """Name the kind of secret that a text seems to hold; None if it holds none."""
    searched = _visible(normalize("NFKC", text[:LONGEST_SEARCHED]))
    if (known := KNOWN.search(searched)) is not None and known.lastindex is not None:
        return list(FORMATS)[known.lastindex - 1]
    for named in NAMED.finditer(searched):
        is_password, value = named[1].casefold().startswith(("pass", "pwd")), named[2].rstrip(".,;:!?)")
        if not PLACEHOLDER.fullmatch(value) and (has_both(value) if is_password else is_random(value)):
            return "a password" if is_password else "a token or a key"
    return None


def _visible(text: str) -> str:
    """Return a text without characters that nobody sees: copied text has them in the middle of a key."""
    return text if text.isascii() else "".join(each for each in text if category(each) != "Cf")


def no_secret(kind: str) -> str:
    """Say why a text is not recorded, and what to do instead."""
    return (
        f"This looks like {kind}, and what is recorded can be read later, so it was not taken. "
        "Put it where the agent can use it, and say only where that is."
    )


def note_without_secret(note: str) -> str:
    """Return a note as it is recorded where nobody can be asked for another one."""
    return note if secret_in(note) is None else "(A note that looked like a secret was not kept.)"


def has_both(text: str) -> bool:
    """Say whether a word has letters and digits, as passwords have and language has not."""
    return any(map(str.isdigit, text)) and any(map(str.isalpha, text))


def is_random(text: str) -> bool:
    """Say whether a word looks made by a machine."""
    counts = Counter(text).values()
    entropy = -sum(count / len(text) * log2(count / len(text)) for count in counts)
    return len(text) >= LEAST_LENGTH and has_both(text) and entropy >= LEAST_ENTROPY
