"""The channels that an answer can come by, and how far each is from the agent.

An agent writes its own reports. A form is shown by the client, a program that can also answer it. What comes
by a channel of strength `user` was done by a person, or by a program that holds the person's credentials.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, get_args

Channel = Literal["elicitation", "console", "cli", "inbox", "link", "approvers", "agent", "server", "time"]
Strength = Literal["none", "agent", "client", "user"]  # the weakest first

STRENGTHS: tuple[Strength, ...] = get_args(Strength)
OF_CHANNEL: Mapping[str, Strength] = {
    "server": "none",  # nobody answered: a default, or an assumption of the mode
    "time": "none",  # the option that a gate names for the case that its approvers do not decide in time
    "agent": "agent",
    "elicitation": "client",
    "console": "user",
    "cli": "user",
    "inbox": "user",
    "link": "user",
    "approvers": "user",  # several people, each by a channel of the user
}


def strength(channel: str) -> Strength:
    """Return the strength of a channel."""
    return OF_CHANNEL[channel]


def is_at_least(channel: str, wanted: Strength) -> bool:
    """Say whether a channel is as strong as wanted, or stronger."""
    return STRENGTHS.index(strength(channel)) >= STRENGTHS.index(wanted)


def labels(channel: str) -> tuple[str, ...]:
    """Return a channel's name, and its strength where the name alone does not say it."""
    known = strength(channel)
    return (channel,) if known in (channel, "none") else (channel, known)


def named(channel: str) -> str:
    """Name a channel with its strength."""
    name, *more = labels(channel)
    return f"{name} ({more[0]})" if more else name
