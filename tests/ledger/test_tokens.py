"""Tokens: short, signed, spelled in one way only, and refused with a sentence that helps."""

from __future__ import annotations

import gzip
import zlib
from base64 import b64decode, b64encode
from string import ascii_letters, digits

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.ledger.tokens.keyring import Key, Keyring
from interlock.ledger.tokens.tokens import (
    STATE_PREFIX,
    Kind,
    Pointer,
    StateError,
    TokenError,
    WordKind,
    mint,
    new_attempt,
    new_handle,
    peek,
    read,
    read_state,
)

KEY = Key("key_one", bytes(range(32)))
OTHER = Key("key_two", bytes(range(1, 33)))
RING = Keyring(KEY)
WORDS: tuple[Kind, ...] = ("st", "ack", "chk", "sst", "ses", "trc")
ALL: tuple[Kind, ...] = (*WORDS, "nav")
ALPHABET = ascii_letters + digits + "-_+/=. é"

nodes = st.integers(0, 2**24 - 1)
attempts = st.integers(0, 2**32 - 1)
handles = st.binary(min_size=10, max_size=10)
lines = st.binary(min_size=3, max_size=3)


def pointers(*kinds: Kind) -> st.SearchStrategy[Pointer]:
    return st.builds(Pointer, st.sampled_from(kinds), handles, nodes, attempts, lines)


def code(error: object) -> str:
    assert isinstance(error, TokenError | StateError)
    assert error.next_action
    return error.code


def replaced(token: str, at: int, character: str) -> str:
    return token[:at] + character + token[at + 1 :]


@given(pointers(*ALL))
def test_a_token_leads_back_to_its_pointer(pointer: Pointer) -> None:
    assert read(RING, mint(KEY, pointer), ALL) == pointer


@given(pointers(*ALL))
def test_minting_twice_gives_the_same_token(pointer: Pointer) -> None:
    assert mint(KEY, pointer) == mint(KEY, pointer)


@given(pointers(*ALL))
def test_rule_1_tokens_are_short_and_their_prefix_says_what_they_are(pointer: Pointer) -> None:
    token = mint(KEY, pointer)
    if pointer.kind == "nav":
        assert token.startswith("v1.gzB64.H4sIAAAAAAA")
        assert len(token) <= 96
    else:
        assert token.startswith(f"{pointer.kind}.v1.")
        assert len(token) <= 48


@given(pointers(*WORDS), st.data())
def test_rule_2_one_changed_character_of_the_word_is_a_bad_signature(
    pointer: Pointer, data: st.DataObject
) -> None:
    token = mint(KEY, pointer)
    at = data.draw(st.integers(len(pointer.kind) + 4, len(token) - 1))
    character = data.draw(st.sampled_from(ALPHABET).filter(lambda one: one != token[at]))
    assert code(read(RING, replaced(token, at, character), ALL)) == "TOKEN_BAD_SIGNATURE"


def test_rule_2_no_second_spelling_of_the_last_character() -> None:
    token = mint(KEY, Pointer("st", b"0123456789", 3, 0))
    spellings = {replaced(token, len(token) - 1, character) for character in ALPHABET} - {token}
    codes = {code(read(RING, spelling, ALL)) for spelling in spellings}
    assert codes == {"TOKEN_BAD_SIGNATURE", "TOKEN_INVALID_FORMAT"}  # a quote or a space makes it shorter


@given(pointers("nav"), st.data())
def test_every_changed_character_of_a_state_is_refused(pointer: Pointer, data: st.DataObject) -> None:
    token = mint(KEY, pointer)
    at = data.draw(st.integers(0, len(token) - 1))
    character = data.draw(st.sampled_from(ALPHABET).filter(lambda one: one != token[at]))
    found = code(read_state(RING, replaced(token, at, character)))
    assert (found == "INVALID_FORMAT") == (at < len(STATE_PREFIX))


@pytest.mark.parametrize("kind", ALL)
def test_padding_is_no_part_of_a_token_and_what_was_copied_around_it_is_left_out(kind: Kind) -> None:
    pointer = Pointer(kind, b"0123456789", 1, 2, b"abc")
    token = mint(KEY, pointer)
    for spelling in (token + "=", token + "==", token[:-1], token + "A", token + "\nA"):
        assert isinstance(read(RING, spelling, ALL), TokenError)
    for spelling in (token + "\n", " " + token, f'"{token}"'):
        assert read(RING, spelling, ALL) == pointer


@pytest.mark.parametrize(
    ("token", "expected"),
    [
        ("", "TOKEN_INVALID_FORMAT"),
        ("hello", "TOKEN_INVALID_FORMAT"),
        ("st.v1.", "TOKEN_INVALID_FORMAT"),
        ("st.v1.short", "TOKEN_INVALID_FORMAT"),
        ("xx.v1." + "A" * 40, "TOKEN_INVALID_FORMAT"),
        ("nav.v1." + "A" * 40, "TOKEN_INVALID_FORMAT"),
        ("st.v2." + "A" * 40, "TOKEN_UNSUPPORTED_VERSION"),
        ("st.v1." + "A" * 40, "TOKEN_BAD_SIGNATURE"),
        ("st.v1." + "é" * 40, "TOKEN_BAD_SIGNATURE"),
        (STATE_PREFIX + "AAAA", "TOKEN_INVALID_FORMAT"),
    ],
)
def test_what_is_no_token_is_refused_by_its_cause(token: str, expected: str) -> None:
    assert code(read(RING, token, ("st",))) == expected


def test_a_token_of_another_kind_is_told_what_it_is_and_what_belongs_there() -> None:
    diagnostic = read(RING, mint(KEY, Pointer("ack", b"0123456789")), ("st", "chk"))
    assert isinstance(diagnostic, TokenError)
    assert diagnostic.code == "TOKEN_SCOPE_MISMATCH"
    assert "ack token" in diagnostic.message
    assert "state token" in diagnostic.message
    assert "checkpoint token" in diagnostic.next_action


def test_the_kind_is_signed() -> None:
    token = mint(KEY, Pointer("st", b"0123456789"))
    assert code(read(RING, "ack" + token.removeprefix("st"), ALL)) == "TOKEN_BAD_SIGNATURE"


def test_the_previous_key_is_believed_and_older_ones_are_not() -> None:
    pointer = Pointer("ses", b"0123456789", 4, 5, b"abc")
    token = mint(KEY, pointer)
    assert read(Keyring(OTHER, previous=KEY), token, ALL) == pointer
    assert code(read(Keyring(OTHER), token, ALL)) == "TOKEN_BAD_SIGNATURE"


@given(pointers("ses"))
def test_rule_6_a_session_token_can_be_peeked_at_without_its_key(pointer: Pointer) -> None:
    assert peek(RING, mint(OTHER, pointer)) == pointer


@given(pointers("ses"))
def test_rule_6_a_token_of_a_retired_key_is_refused_and_not_adopted(pointer: Pointer) -> None:
    token, rotated = mint(OTHER, pointer), Keyring(KEY, retired=(OTHER,))
    assert code(read(rotated, token, ALL)) == "TOKEN_KEY_RETIRED"
    assert peek(rotated, token) is None


@pytest.mark.parametrize("kind", ["st", "ack", "chk", "sst", "trc"])
def test_rule_6_a_token_of_another_kind_is_not_adopted_however_it_is_spelled(kind: WordKind) -> None:
    token = mint(KEY, Pointer(kind, b"0123456789", 1, 2))
    assert peek(RING, "ses" + token.removeprefix(kind)) is None


def test_rule_6_a_handle_with_anything_behind_it_is_not_adopted() -> None:
    token = mint(OTHER, Pointer("ses", b"0123456789", 1, 2))
    for spelled in (f"{token}A", f"{token}====", token[:-1] + "+", token[:-2]):
        assert peek(RING, spelled) is None


@pytest.mark.parametrize("token", ["", "ses.v1.", "ses.v1.AAAA", "ses.v2." + "A" * 40, "st.v1." + "A" * 40])
def test_only_a_whole_session_token_can_be_peeked_at(token: str) -> None:
    assert peek(RING, token) is None


def test_a_pointer_does_not_show_its_handle() -> None:
    assert "secret" not in repr(Pointer("st", b"secretsecr"))


def test_a_state_is_a_gzip_file_that_any_reader_opens() -> None:
    token = mint(KEY, Pointer("nav", b"0123456789", 7, 8))
    assert gzip.decompress(b64decode(token.removeprefix(STATE_PREFIX))).startswith(b"0123456789")


@pytest.mark.parametrize(
    ("state", "expected", "message"),
    [
        ("st.v1.x", "INVALID_FORMAT", "Invalid token format. Expected prefix 'v1.gzB64.'"),
        (STATE_PREFIX, "DECODE_FAILED", "Empty token payload"),
        (STATE_PREFIX + "!", "DECODE_FAILED", "Failed to decode payload"),
        (STATE_PREFIX + "AAAA", "DECOMPRESS_FAILED", "Failed to decompress payload"),
        (STATE_PREFIX + b64encode(gzip.compress(b"{}", mtime=0)).decode(), "VALIDATION_FAILED", None),
        (mint(OTHER, Pointer("nav", b"0123456789")), "VALIDATION_FAILED", None),
    ],
)
def test_a_bad_state_is_refused_by_its_cause(state: str, expected: str, message: str | None) -> None:
    diagnostic = read_state(RING, state)
    assert isinstance(diagnostic, StateError)
    assert diagnostic.code == expected
    assert diagnostic.message == message or diagnostic.message.startswith("State validation failed: ")


def test_the_same_pointer_packed_another_way_is_refused() -> None:
    token = mint(KEY, Pointer("nav", b"0123456789"))
    signed = gzip.decompress(b64decode(token.removeprefix(STATE_PREFIX)))
    again = STATE_PREFIX + b64encode(gzip.compress(signed, 9, mtime=1)).decode()
    assert code(read_state(RING, again)) == "VALIDATION_FAILED"


def test_a_state_that_would_fill_the_memory_is_refused_unopened() -> None:
    bomb = zlib.compressobj(9, zlib.DEFLATED, 31)
    packed = b"".join([*(bomb.compress(bytes(2**20)) for _ in range(64)), bomb.flush()])
    assert code(read_state(RING, STATE_PREFIX + b64encode(packed).decode())) == "VALIDATION_FAILED"


def test_rule_3_fresh_attempts_never_take_the_first_ones_number() -> None:
    attempts = {new_attempt() for _ in range(1000)}
    assert len(attempts) > 990
    assert all(0 < attempt < 2**32 for attempt in attempts)
    assert len(new_handle()) == 10
    assert new_handle() != new_handle()
