"""What is taken for a secret, and what is not."""

from __future__ import annotations

import pytest

from interlock.core.secrets import note_without_secret, secret_in

LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("-----BEGIN RSA PRIVATE KEY-----\nMIIE", "a private key"),
        ("-----BEGIN OPENSSH PRIVATE KEY-----", "a private key"),
        ("AKIA" + "Q3EGQ7X2ZZ5T6WHA", "an AWS access key"),
        ("use ghp_" + LETTERS[:36], "a GitHub token"),
        ("github_pat_" + LETTERS[:40], "a GitHub token"),
        ("glpat-" + LETTERS[:20], "a GitLab token"),
        ("xoxb-" + "123456789012-abcdef", "a Slack token"),
        ("it is sk-ant-" + LETTERS[:40], "an API key"),
        ("sk_live_" + LETTERS[:24], "an API key"),
        ("AIza" + LETTERS[:35], "a Google API key"),
        ("npm_" + LETTERS[:36], "a package registry's token"),
        ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N", "a JSON web token"),
        ("postgres://app:hunter2@db/main", "an address with a password"),
        ("The password is hunter2!", "a password"),
        ("password: Tr0ub4dor&3", "a password"),
        ("PWD=correct1horse", "a password"),
        ("token 9f86d081884c7d659a2feaa0c55ad015", "a token or a key"),
        ("api key: q8Zr2LmN0pXs", "a token or a key"),
        ("Bearer q8Zr2LmN0pXsT5vW", "a token or a key"),
        ("mine is ilk_" + "0123456789abcdef" * 4, "a token of Interlock"),
        ("http://127.0.0.1:8750/answer/" + LETTERS + LETTERS, "a token of Interlock"),
        ("ghp_" + LETTERS[:20] + "\u200b" + LETTERS[20:36], "a GitHub token"),
        ("\uff47\uff48\uff50_" + LETTERS[:36], "a GitHub token"),
    ],
)
def test_a_secret_is_recognised(text: str, kind: str) -> None:
    assert secret_in(text) == kind


@pytest.mark.parametrize(
    "text",
    [
        "",
        "approve",
        "The password is in the keychain.",
        "The token is set in $DEPLOY_TOKEN",
        "token: <the token>",
        "The secret is in vault://team/deploy",
        "password: ~/.secrets/deploy",
        "Use a token bucket of 5 requests",
        "Which credentials should the job use?",
        "commit 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b",
        "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
        "https://example.org/runs/42?tab=story",
        "api key rotation is planned",
        "secretary@example.org",
        "sess_oxhbshacbeuh4l2kmz3cuvwcrf",
        "the skip-level-review-for-everybody-next-week meeting",
    ],
)
def test_other_answers_are_none(text: str) -> None:
    assert secret_in(text) is None


def test_a_note_that_looks_like_a_secret_is_replaced() -> None:
    assert note_without_secret("seen on staging") == "seen on staging"
    assert "hunter2" not in note_without_secret("password: hunter2")
