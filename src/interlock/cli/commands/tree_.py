"""`interlock tree ID`: the branches of a session's runs, as a graph."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import click
import msgspec

from interlock.cli.exits import CHECK_FAILED
from interlock.cli.options import json_option, print_json
from interlock.cli.reach import session_argument, session_of, with_ledger
from interlock.cli.screen import STATUS_TONES, fit, line_of, paint, say, stop, width, words
from interlock.ledger.ledger import Ledger
from interlock.ledger.log.health import examine
from interlock.ledger.queries.status import ref_of
from interlock.ledger.queries.tree import Tree, TreeNode, children_of, trees_of
from interlock.store.protocol import SessionRow


@click.command(epilog="Example: interlock tree hmc3gzdk")
@session_argument
@json_option
@with_ledger
def command(ledger: Ledger, ref: str, as_json: bool) -> None:
    """Draw the branches of a session: forks with their causes, the preferred tip marked."""
    session = session_of(ledger, ref)
    report = examine(ledger.store, session)
    trees = trees_of(ledger, session, report.events)
    if as_json:
        print_json({"sessionId": session.session_id, "runs": msgspec.to_builtins(trees)})
    else:
        _show(session, trees)
    if report.health != "healthy":
        stop(CHECK_FAILED, f"The log is damaged ({report.reason}). Run `interlock doctor --repair`.")


def _show(session: SessionRow, trees: list[Tree]) -> None:
    short = ref_of(session.session_id)
    say(f"{paint(fit(line_of(session.title), _room(len(short) + 2)), 'strong')}  {paint(short, 'quiet')}")
    for target, tree in enumerate(trees):
        if target:
            say()
        draw(tree)
    if not trees:
        say("No run yet.")


def draw(tree: Tree) -> None:
    """Print one run."""
    tone = STATUS_TONES.get(tree.status, "plain")
    say(f"{paint(tree.workflow_id, 'accent')}  {paint(words(tree.status), tone)}")
    say()
    for line in _lines(tree):
        say(line)


def _room(taken: int) -> int | None:
    limit = width()
    return None if limit is None else limit - taken


def _lines(tree: Tree) -> Iterator[str]:
    children = children_of(tree.nodes)
    liked = _preferred(tree)
    for root in children[None]:
        yield from _branch(root, children, liked, "")


def _preferred(tree: Tree) -> frozenset[int]:
    """The nodes on the way to the preferred tip."""
    parents = {one.node: one.parent for one in tree.nodes}
    here = tree.tip if tree.tip in parents else None
    path = set[int]()
    while here is not None:
        path.add(here)
        here = parents[here]
    return frozenset(path)


def _branch(
    node: TreeNode, children: Mapping[int | None, list[TreeNode]], liked: frozenset[int], margin: str
) -> Iterator[str]:
    """Draw a line of work to its end; what forks off it is drawn beside it, before it goes on."""
    here: TreeNode | None = node
    while here is not None:
        yield _line(here, margin)
        below = children.get(here.node, [])
        for kept in (one for one in below if one.kind == "note"):
            yield _fitted(f"{margin}├─◇", kept, "quiet")
        steps = sorted((one for one in below if one.kind == "step"), key=lambda one: one.node in liked)
        for fork in steps[:-1]:
            yield f"{margin}├─╮"
            yield from _branch(fork, children, liked, f"{margin}│ ")
        here = steps[-1] if steps else None


def _line(node: TreeNode, margin: str) -> str:
    mark = "◉" if node.preferred else "○" if node.tip else "●"
    return _fitted(f"{margin}{mark}", node, "good" if node.preferred else "plain")


def _fitted(lead: str, node: TreeNode, tone: str) -> str:
    text = f"{lead} {node.node:<3} {line_of(node.label)}{_remarks(node)}"
    return paint(fit(text, width()), "good" if tone == "good" else "quiet" if tone == "quiet" else "plain")


def _remarks(node: TreeNode) -> str:
    said = []
    if node.cause == "non_tip_advance":
        said.append(f"fork: rewound to {node.parent}")
    if node.blocked:
        said.append(f"{node.blocked} blocked")
    if node.tip:
        said.append(_standing(node))
    return f"  [{'; '.join(said)}]" if said else ""


def _standing(node: TreeNode) -> str:
    tip = "preferred tip" if node.preferred else "tip"
    match node.pending.kind:
        case "nothing":
            return f"{tip}, complete"
        case "decision":
            return f"{tip}, waits: {node.pending.id}"
        case _:
            return f"{tip}, next: {node.pending.id}"
