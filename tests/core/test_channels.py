"""Channels: each has a strength, and a decision's record names both."""

from typing import get_args

import pytest

from interlock.core.run.channels import OF_CHANNEL, Channel, is_at_least, named, strength


def test_every_channel_has_a_strength() -> None:
    assert set(OF_CHANNEL) == set(get_args(Channel))


@pytest.mark.parametrize("channel", ["console", "cli", "inbox"])
def test_a_person_s_channel_is_stronger_than_a_form_and_a_form_than_a_report(channel: str) -> None:
    assert is_at_least(channel, "user")
    assert not is_at_least("elicitation", "user")
    assert is_at_least("elicitation", "client")
    assert not is_at_least("agent", "client")
    assert not is_at_least("server", "agent")


def test_a_channel_is_shown_with_its_strength_unless_it_says_it() -> None:
    assert [named(channel) for channel in ("cli", "elicitation", "agent", "server")] == [
        "cli (user)",
        "elicitation (client)",
        "agent",
        "server",
    ]
    assert strength("inbox") == "user"
