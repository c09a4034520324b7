"""`interlock tree ID`: the branches of a session's runs, drawn as a graph."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import click
import msgspec

from interlock.cli.options import json_option, owner_option, session_argument, with_ledger
from interlock.cli.references import owned_session
from interlock.cli.screen import (
    CHECK_FAILED,
    STATUS_TONES,
    Tone,
    fit,
    line_of,
    paint,
    print_json,
    room_after,
    say,
    status_words,
    stop,
    width,
)
from interlock.ledger.ledger import Ledger
from interlock.ledger.log.health import examine
from interlock.ledger.queries.status import ref_of
from interlock.ledger.queries.tree import Tree, TreeNode, children_of, trees_of
from interlock.ledger.runs.whole_session import WholeSession


@click.command(epilog="Example: interlock tree hmc3gzdk")
@session_argument
@owner_option
@json_option
@with_ledger
def command(ledger: Ledger, ref: str, owner: str, as_json: bool) -> None:
    """Draw the branches of a session. ◉ marks the preferred tip, ○ other tips."""
    ledger, session = owned_session(ledger, ref, owner)
    report = examine(ledger.store, session)
    trees = trees_of(WholeSession(ledger, session, report.events))
    if as_json:
        print_json({"sessionId": session.session_id, "runs": msgspec.to_builtins(trees)})
    else:
        short = ref_of(session.session_id)
        title = fit(line_of(session.title), room_after(len(short) + 2))
        say(f"{paint(title, 'strong')}  {paint(short, 'quiet')}")
        for number, tree in enumerate(trees):
            if number:
                say()
            draw(tree)
        if not trees:
            say("No run yet.")
    if report.health != "healthy":
        stop(CHECK_FAILED, f"The log is damaged ({report.reason}). Run `interlock doctor --repair`.")


def draw(tree: Tree) -> None:
    """Print one run."""
    tone = STATUS_TONES.get(tree.status, "plain")
    say(f"{paint(tree.workflow_id, 'accent')}  {paint(status_words(tree.status), tone)}")
    say()
    children = children_of(tree.nodes)
    parents = {node.node: node.parent for node in tree.nodes}
    preferred = set[int]()  # the nodes from the root to the preferred tip
    node = tree.tip if tree.tip in parents else None
    while node is not None:
        preferred.add(node)
        node = parents[node]
    for root in children[None]:
        for line in _branch(root, children, preferred, "", 0):
            say(line)


def _branch(
    start: TreeNode,
    children: Mapping[int | None, list[TreeNode]],
    preferred: set[int],
    margin: str,
    blocked: int,
) -> Iterator[str]:
    """Draw a branch to its tip. At a fork, the side branches come first and are indented.

    `blocked` counts the attempts that failed before the branch's first node was reached.
    """
    node: TreeNode | None = start
    while node is not None:
        mark = "◉" if node.preferred else "○" if node.tip else "●"
        yield _line(f"{margin}{mark}", node, "good" if node.preferred else "plain", blocked)
        blocked = node.blocked
        below = children.get(node.node, [])
        for note in (child for child in below if child.kind == "note"):
            yield _line(f"{margin}├─◇", note, "quiet", 0)
        steps = sorted(
            (child for child in below if child.kind == "step"), key=lambda child: child.node in preferred
        )
        for fork in steps[:-1]:
            yield f"{margin}├─╮"
            yield from _branch(fork, children, preferred, f"{margin}│ ", 0)
        node = steps[-1] if steps else None


def _line(lead: str, node: TreeNode, tone: Tone, blocked: int) -> str:
    remarks = [f"after {blocked} blocked"] if blocked else []
    remarks += [f"diverged: {status_words(reason)}" for reason in node.diverged]
    if node.cause == "non_tip_advance":
        remarks.append(f"fork: rewound to {node.parent}")
    if node.tip:
        tip = "preferred tip" if node.preferred else "tip"
        pending = {"nothing": node.pending.title or "complete", "decision": f"waits: {node.pending.id}"}
        remarks.append(f"{tip}, {pending.get(node.pending.kind, f'next: {node.pending.id}')}")
        if node.blocked:
            remarks.append(f"{node.blocked} blocked")
    bracketed = f"  [{'; '.join(remarks)}]" if remarks else ""
    return paint(fit(f"{lead} {node.node:<3} {line_of(node.label)}{bracketed}", width()), tone)
