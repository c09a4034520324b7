"""Artifacts by their contract, and the tables that the artifacts of a branch come to (Appendix A)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.authoring.compile.builtins import ContractPack, contracts
from interlock.ledger.queries.artifacts import READERS, ShownArtifact, shown_artifact
from interlock.ledger.queries.branch_artifacts import BranchArtifacts, branch_artifacts
from interlock.ledger.queries.story import HandedIn, RunStory, StoryStep

TRIAGE = {
    "kind": "mr_review.phase_0_triage",
    "review": {
        "mrTitle": "Wire the provider",
        "classification": "Standard",
        "focusAreas": ["wiring", "usability"],
    },
    "revisionLogEntry": "Triage completed.",
}
FOUND = {
    "kind": "mr_review.findings",
    "findings": [
        {"severity": "Minor", "title": "A typo", "location": {"file": "a.ts", "line": 2}},
        {
            "severity": "Major",
            "title": "Drift",
            "location": {"file": "b.ts", "line": 79},
            "rationale": "Why.",
        },
    ],
    "mrComments": [{"location": {"file": "b.ts", "line": 79}, "title": "Fix it", "body": "Please fix."}],
}

SCALARS = st.none() | st.booleans() | st.integers(-9, 9) | st.text("ab_/.:", max_size=4)
JSON = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("abk", max_size=3), inner),
    max_leaves=6,
)
KINDS = [f"wr.{name}" for name in READERS]
KINDS += ["mr_review.findings", "wr.mr_review.changed_files", "mr_review.phase_2", "other.kind", ""]
FIELDS = sorted(
    {name for pack in contracts().values() for name in pack.example}
    | {"review", "revisionLogEntry", "changedFiles", "mrComments"}
)
ROW_FIELDS = (
    "title",
    "summary",
    "severity",
    "location",
    "line",
    "file",
    "body",
    "name",
    "result",
    "rule",
    "gap",
)


@st.composite
def artifacts(draw: st.DrawFn) -> dict[str, Any]:
    """Return an artifact of a known or unknown kind whose fields may be of any type."""
    row = st.dictionaries(st.sampled_from(ROW_FIELDS), JSON, max_size=4)
    rows = st.lists(row, max_size=3)
    fields = st.dictionaries(st.sampled_from(FIELDS), JSON | row | rows, max_size=4)
    return {**draw(fields), "kind": draw(st.sampled_from(KINDS))}


def leaves(value: Any) -> Iterator[str]:
    """Yield every text and number in a value, as it is read."""
    match value:
        case dict():
            for inner in value.values():
                yield from leaves(inner)
        case list() | tuple():
            for inner in value:
                yield from leaves(inner)
        case str():
            yield value
        case _:
            yield msgspec.json.encode(value).decode()


@given(artifacts())
def test_nothing_that_was_handed_in_is_left_out(artifact: dict[str, Any]) -> None:
    shown = "\n".join(leaves(msgspec.to_builtins(shown_artifact(artifact)))).replace("_", " ")
    assert all(leaf.replace("_", " ") in shown for leaf in leaves(artifact))


@given(st.dictionaries(st.text(max_size=5), JSON))
def test_an_unknown_kind_is_left_as_it_is(artifact: dict[str, Any]) -> None:
    artifact = {**artifact, "kind": "team.custom"}
    rest = {name: value for name, value in artifact.items() if name != "kind"}
    assert shown_artifact(artifact) == ShownArtifact("team.custom", rest=rest)


@pytest.mark.parametrize("pack", contracts().values(), ids=lambda pack: pack.kind)
def test_the_example_of_every_contract_is_read_whole(pack: ContractPack) -> None:
    shown = shown_artifact(pack.example)
    assert (shown.title, shown.rest) == (pack.title, {})


def test_a_review_has_its_header_log_findings_and_comments() -> None:
    triage, found = shown_artifact(TRIAGE), shown_artifact(FOUND)
    assert triage.header is not None
    assert (triage.header.title, triage.header.focus_areas) == ("Wire the provider", ("wiring", "usability"))
    assert [entry.text for entry in triage.log] == ["Triage completed."]
    assert [(each.severity, each.file, each.line) for each in found.findings] == [
        ("Major", "b.ts", 79),
        ("Minor", "a.ts", 2),
    ]
    assert [(each.file, each.body) for each in found.comments] == [("b.ts", "Please fix.")]


def test_a_list_that_does_not_follow_its_contract_is_shown_as_it_is() -> None:
    artifact = {"kind": "mr_review.changed_files", "changedFiles": [{"path": "a"}, "b"]}
    assert shown_artifact(artifact).rest == {"changedFiles": [{"path": "a"}, "b"]}


def test_a_text_is_never_read_as_an_artifact() -> None:
    notes = '{"kind": "wr.verification_report", "verdict": "fail", "checks": []}'
    story = told([HandedIn(1, (notes,), ())])
    assert branch_artifacts(story).checks == ()


def told(attempts: Sequence[HandedIn]) -> RunStory:
    """Return a branch whose steps handed these in."""
    steps = [
        StoryStep(
            node=node,
            kind="step",
            item=f"step-{node}",
            id=f"step-{node}",
            title="",
            prompt="",
            asked_at=0,
            done_at=attempt.at,
            handed_in=attempt,
        )
        for node, attempt in enumerate(attempts)
    ]
    return RunStory("run_x", len(steps), tuple(steps))


def branch(*handed_in: dict[str, Any]) -> BranchArtifacts:
    """Reduce a branch whose steps handed in one artifact each."""
    return branch_artifacts(
        told([HandedIn(at, (), (shown_artifact(each),)) for at, each in enumerate(handed_in, 1)])
    )


PATHS = st.sampled_from(["a.py", "b.py", "c/d.py", "Z.py"])
FILE_TABLES = st.lists(
    st.builds(
        lambda rows: {"kind": "mr_review.changed_files", "changedFiles": rows},
        st.lists(st.fixed_dictionaries({"path": PATHS, "summary": st.text("xyz", min_size=1, max_size=2)})),
    ),
    max_size=5,
)


@given(FILE_TABLES)
def test_files_are_ordered_by_path_and_each_row_is_the_last_that_was_told(
    tables: list[dict[str, Any]],
) -> None:
    last = {
        row["path"]: (row["summary"], number)
        for number, table in enumerate(tables, 1)
        for row in table["changedFiles"]
    }
    files = branch(*tables).files
    assert [file.path for file in files] == sorted(last)
    assert all(file.revision is not None for file in files)
    assert {file.path: (file.summary, file.revision and file.revision.number) for file in files} == last


@given(FILE_TABLES, FILE_TABLES)
def test_what_a_branch_comes_to_depends_on_its_own_artifacts_alone(
    shared: list[dict[str, Any]], later: list[dict[str, Any]]
) -> None:
    before = {file.path: file for file in branch(*shared).files}
    after = {file.path: file for file in branch(*shared, *later).files}
    told_later = {row["path"] for table in later for row in table["changedFiles"]}
    assert {path: file for path, file in after.items() if path not in told_later} == {
        path: file for path, file in before.items() if path not in told_later
    }


@given(st.lists(artifacts(), max_size=4))
def test_the_same_artifact_again_changes_revisions_only(handed_in: list[dict[str, Any]]) -> None:
    def rows(reduced: BranchArtifacts) -> Any:
        return [
            {name: value for name, value in msgspec.to_builtins(row).items() if name != "revision"}
            for row in (*reduced.files, *reduced.findings, *reduced.comments)
        ]

    once = branch(*handed_in)
    twice = branch(*(each for artifact in handed_in for each in (artifact, artifact)))
    assert sorted(map(str, rows(once))) == sorted(map(str, rows(twice)))
    assert [file.path for file in once.files] == [file.path for file in twice.files]


def test_each_check_shows_its_last_result_and_where_it_came_from() -> None:
    def report(result: str) -> dict[str, Any]:
        checks = [{"name": "suite", "result": result}]
        return {"kind": "wr.verification_report", "verdict": result, "checks": checks}

    (check,) = branch(report("fail"), TRIAGE, report("pass")).checks
    assert check.revision is not None
    assert (check.result, check.revision.number, check.revision.step) == ("pass", 3, "step-2")


def test_a_working_agreement_is_what_its_patches_leave() -> None:
    def patch(**change: str) -> dict[str, Any]:
        return {"kind": "working_agreement_patch", "changes": [change]}

    reduced = branch(
        patch(op="add", rule="Ask first."),
        patch(op="add", rule="Small steps."),
        patch(op="replace", rule="Ask before migrations.", replaces="Ask first."),
        patch(op="remove", rule="Small steps."),
        patch(op="add", rule="No sleeps."),
    )
    assert [rule.rule for rule in reduced.rules] == ["Ask before migrations.", "No sleeps."]


def test_a_review_along_a_branch_keeps_its_header_and_its_log() -> None:
    second = {"kind": "mr_review.phase_1", "review": {"classification": "Risky"}, "revisionLogEntry": "Read."}
    reduced = branch(TRIAGE, second)
    assert reduced.header is not None
    assert (reduced.header.title, reduced.header.classification) == ("Wire the provider", "Risky")
    assert [entry.text for entry in reduced.log] == ["Triage completed.", "Read."]
