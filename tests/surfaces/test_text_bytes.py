"""How much of what an agent reads repeats an earlier answer, or is footer."""

from __future__ import annotations

from bench.text_bytes import PIECE, share_of

SENTENCE = "Run every check and the existing tests of the files you touched."


def test_what_stands_in_an_earlier_answer_is_counted_as_repeated() -> None:
    share = share_of([f"Look. {SENTENCE}", f"Go on. {SENTENCE}"])
    assert (share.calls, share.repeated) == (2, len(SENTENCE) + 2)  # with the end of what stands before it


def test_a_short_piece_and_the_same_answer_itself_are_no_repetition() -> None:
    share = share_of([SENTENCE[: PIECE - 1], SENTENCE[: PIECE - 1], f"{SENTENCE}\n{SENTENCE}"])
    assert share.repeated == 0


def test_tokens_and_how_to_go_on_are_footer_and_not_repeated() -> None:
    footer = "\n---\nWhen done: continue_workflow with output and these tokens.\nstateToken: st.v1.abc"
    share = share_of([f"Do this{footer}", f"Do that{footer}", '{"session_token":"ses.v1.abc"}'])
    assert share.footer == 2 * len(footer) + len('"session_token":"ses.v1.abc"')
    assert share.repeated == 0


def test_a_warning_after_the_tokens_and_a_text_after_a_fence_are_no_footer() -> None:
    footer = "\n---\nWhen done: continue_workflow.\nstateToken: st.v1.abc\nackToken: ack.v1.abc\n"
    share = share_of(
        [f"Do this{footer}\nWarning: 'task' is not taken.", "rules: keep it short\n\n---\n\nid: flow"]
    )
    assert share.footer == len(footer)
