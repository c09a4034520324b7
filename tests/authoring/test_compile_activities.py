"""Activity folders compile to the same model, from TOON and from YAML, with the texts they refer to."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
import toon_format
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from interlock.authoring.library import Library, Loaded, Source
from interlock.core.definition.conditions import Compare
from interlock.core.definition.workflow import Activity, Gate, Loop, Step
from support.authored import diagnostics, library, step, words, write

HEAD = """\
id: review
version: 1.0.0
title: Review
description: Reviews things
initialActivity: look
skills:
  primary: lead
variables[2]:
  - name: done
    type: boolean
    defaultValue: false
  - name: files
    type: array
    required: true
"""

HEAD_OF_ONE = "id: w\nversion: 1.0.0\ntitle: W\ninitialActivity: a\nskills: {primary: w/s}\n"
ONLY_ACTIVITY = "id: a\nversion: 1.0.0\nname: A\nsteps:\n  - {id: s, name: S}\n"

LOOK = """\
id: look
version: 1.0.0
name: Look
skills:
  primary: lead
  supporting[1]:
    - meta/worker
steps[2]:
  - id: read
    name: Read it
    description: Read all of it.
    skill: reader
    actions[1]{action,target,message}:
      set,done,whether it is read
  - id: judge
    name: Judge it
    description: Say what you think.
    checkpoint: agree
loops[1]:
  - id: each-file
    name: Each file
    type: forEach
    variable: file
    over: files
    steps[1]:
      - id: open
        name: Open
        description: Open {{file}}.
checkpoints[2]:
  - id: later
    name: Later
    message: And now?
    options[2]:
      - id: on
        label: Go on
        effect:
          setVariable:
            done: true
      - id: stop
        label: Stop
        effect:
          transitionTo: end-workflow
  - id: agree
    name: Agree
    message: Do you agree?
    defaultOption: yes
    autoAdvanceMs: 30000
    options[2]:
      - id: yes
        label: Yes
        effect:
          setVariable:
            done: true
      - id: no
        label: No
transitions[2]:
  - to: write
    condition:
      type: simple
      variable: done
      operator: "=="
      value: true
  - to: look
    isDefault: true
"""

WRITE = """\
id: write
version: 1.0.0
name: Write
steps[1]:
  - id: draft
    name: Draft
    description: Write it.
"""

SKILL = "id: {0}\nversion: 1.0.0\ncapability: Does {0}\nresources[1]:\n  - {1}\n"

TREE: dict[str, str] = {
    "review/workflow.toon": HEAD,
    "review/README.md": "not a workflow",
    "review/activities/01-look.toon": LOOK,
    "review/activities/02-write.toon": WRITE,
    "review/activities/README.md": "ignored",
    "review/skills/00-lead.toon": SKILL.format("lead", "05"),
    "review/resources/05-guide.md": "---\nid: the-guide\nversion: 2.1.0\n---\n\n# Guide\n",
    "review/templates/01-report.md": "# Report\n",
    "meta/workflow.toon": "id: meta\nversion: 1.0.0\ntitle: Meta\ninitialActivity: write\n",
    "meta/activities/00-write.toon": WRITE,
    "meta/skills/00-worker.toon": SKILL.format("worker", "meta/07"),
    "meta/skills/01-reader.toon": SKILL.format("reader", "07"),
    "meta/resources/07-style.md": "Be brief.\n",
}


def loaded(folder: Path, files: Mapping[str, str] = TREE, name: str = "review") -> Loaded:
    found = library(write(folder, files)).load(name)
    assert isinstance(found, Loaded), found
    return found


def activity(found: Loaded, name: str) -> Activity:
    one = found.workflow.activity(name)
    assert one is not None
    return one


def test_items_are_in_the_order_of_rule_23(tmp_path: Path) -> None:
    items = activity(loaded(tmp_path), "look").items
    assert [(type(item), item.id) for item in items] == [
        (Gate, "later"),
        (Step, "read"),
        (Gate, "agree"),
        (Step, "judge"),
        (Loop, "each-file"),
    ]
    placed = [(item.bound_to, item.place) for item in items if isinstance(item, Gate)]
    assert placed == [(None, "before 'read', which itself sets done"), ("judge", "")]


LOOPS = "loops:\n  - {id: each, type: forEach, over: parts, steps: [{id: inner, name: I, description: D}]}\n"
STEPS = "steps:\n  - {id: close, name: C, description: D, checkpoint: done}\n"
ASKED = "checkpoints:\n  - {id: done, name: Done, message: Is it done, options: [{id: y, label: Y}]}\n"


@pytest.mark.parametrize("ending", ["yaml", "toon"])
@pytest.mark.parametrize(
    ("lists", "expected"),
    [
        (LOOPS + STEPS, ["each", "done", "close"]),
        (STEPS + LOOPS, ["done", "close", "each"]),
        (ASKED + LOOPS + STEPS, ["each", "done", "close"]),
    ],
)
def test_steps_and_loops_keep_their_declared_order(
    tmp_path: Path, lists: str, expected: list[str], ending: str
) -> None:
    text = "id: a\nname: A\nversion: 1.0.0\n" + lists + ("" if ASKED in lists else ASKED)
    if ending == "toon":
        text = toon_format.encode(yaml.safe_load(text))
    files = {
        "w/workflow.yaml": "id: w\nversion: 1.0.0\ntitle: W\ninitialActivity: a\n"
        "variables: [{name: parts}]\n",
        f"w/activities/01-a.{ending}": text,
    }
    assert [item.id for item in activity(loaded(tmp_path, files, "w"), "a").items] == expected


@pytest.mark.parametrize("name", ["skill_args", "skillArgs"])
@pytest.mark.parametrize("triggers", ["{workflow: w}", "[{workflow: w}]"])
def test_a_step_may_have_skill_args_and_a_single_trigger(tmp_path: Path, name: str, triggers: str) -> None:
    written = f"{{id: s, name: S, description: D, {name}: {{depth: 2}}, triggers: {triggers}}}"
    files = {
        "w/workflow.yaml": "id: w\nversion: 1.0.0\ntitle: W\ninitialActivity: a\n",
        "w/activities/01-a.yaml": f"id: a\nname: A\nversion: 1.0.0\nsteps:\n  - {written}\n",
    }
    found = loaded(tmp_path, files, "w")
    assert found.diagnostics == ()
    assert step(found, "s").skill_args == {"depth": 2}
    assert [trigger.workflow for trigger in step(found, "s").triggers] == ["w"]
    assert "Start the workflow `w`" in words(step(found, "s"))


def test_a_gate_with_a_default_and_a_time_does_not_block(tmp_path: Path) -> None:
    """Rule 24."""
    gates = {gate.id: gate.blocking for gate in activity(loaded(tmp_path), "look").gates()}
    assert gates == {"agree": False, "later": True}


def test_a_step_says_what_it_must_produce(tmp_path: Path) -> None:
    """Rule 19."""
    text = words(step(loaded(tmp_path), "read"))
    assert "Read all of it." in text
    assert "Produce the variable `done`: whether it is read" in text
    assert "`reader`" in text


def test_loops_transitions_and_variables(tmp_path: Path) -> None:
    found = loaded(tmp_path)
    look = activity(found, "look")
    loop = next(item for item in look.items if isinstance(item, Loop))
    assert (loop.kind, loop.items, loop.item_var, loop.max_iterations) == ("forEach", "files", "file", 100)
    assert [(transition.to, transition.condition, transition.default) for transition in look.transitions] == [
        ("write", Compare("done", "==", True), False),
        ("look", None, True),
    ]
    assert found.workflow.defaults() == {"done": False}
    assert look.artifact_prefix == "01"


def test_texts_are_reachable_by_digest(tmp_path: Path) -> None:
    found = loaded(tmp_path)
    texts = {
        (document.kind, document.ref): found.text(document.digest) for document in found.workflow.documents
    }
    assert texts["activity", "look"] == LOOK
    assert texts["skill", "lead"] == TREE["review/skills/00-lead.toon"]
    assert texts["resource", "05"] == "# Guide"
    assert texts["template", "01"] == "# Report"
    guide = next(document for document in found.workflow.documents if document.ref == "05")
    assert (guide.id, guide.version, guide.title, guide.format) == ("the-guide", "2.1.0", "Guide", "md")


def test_skills_come_from_meta_when_the_workflow_has_none(tmp_path: Path) -> None:
    """Rule 36."""
    found = loaded(tmp_path)
    texts = {
        (document.kind, document.ref): found.text(document.digest) for document in found.workflow.documents
    }
    assert texts["skill", "reader"] == TREE["meta/skills/01-reader.toon"].replace("07", "meta/07")
    assert texts["skill", "meta/worker"] == TREE["meta/skills/00-worker.toon"]
    assert texts["resource", "meta/07"] == "Be brief."
    assert found.diagnostics == tuple(
        diagnostic for diagnostic in found.diagnostics if diagnostic.code == "IL508"
    )


def test_meta_is_hidden_and_loadable(tmp_path: Path) -> None:
    entries = library(write(tmp_path, TREE)).listing().entries
    assert {entry.id: entry.hidden for entry in entries} == {"review": False, "meta": True}


def test_the_same_layout_in_yaml(tmp_path: Path) -> None:
    files = {
        "review/workflow.yaml": "id: review\nversion: 1.0.0\ntitle: R\ninitialActivity: look\n"
        "variables: [{name: more}, {name: it}]\n",
        "review/activities/01-look.yaml": (
            "id: look\nname: Look\nskills: {primary: lead}\nsteps:\n"
            "  - {id: read, name: Read}\n"
            "  - {type: gate, id: ok, message: Ok?, options: [{id: a, effect: {transitionTo: look}}]}\n"
            "  - type: loop\n    id: again\n    title: Again\n"
            "    loop: {type: while, condition: {var: more}, maxIterations: 2}\n"
            "    body: [{id: redo, name: Redo, prompt: Redo.}]\n"
            "  - {id: last, name: Last, description: Stop.}\n"
        ),
        "review/activities/look/read.md": "Read {{it}}.\n",
        "review/skills/00-lead.yaml": "id: lead\nversion: 1.0.0\ncapability: Leads\nrules: {calm: Calm}\n",
    }
    found = loaded(tmp_path, files)
    look = activity(found, "look")
    assert [item.id for item in look.items] == ["read", "ok", "again", "last"]
    assert look.document is None
    assert words(step(found, "read")) == "Read {{it}}."
    skill = next(document for document in found.workflow.documents if document.kind == "skill")
    assert skill.format == "toon"
    assert found.text(skill.digest) == "id: lead\nversion: 1.0.0\ncapability: Leads\nrules:\n  calm: Calm\n"


@pytest.mark.parametrize("reference", ["02-write.toon", "activities/02-write.toon", "write"])
def test_activities_may_be_borrowed(tmp_path: Path, reference: str) -> None:
    head = (
        "id: other\nversion: 1.0.0\ntitle: O\ninitialActivity: write\nactivities[1]:\n"
        f"  - review/{reference}\n"
    )
    found = loaded(tmp_path, {**TREE, "other/workflow.toon": head}, "other")
    write_ = activity(found, "write")
    assert write_.document is not None
    assert found.text(write_.document) == WRITE


def test_a_target_that_only_the_lender_has_is_a_warning(tmp_path: Path) -> None:
    steps_ = "version: 1.0.0\nname: A\nsteps[1]:\n  - id: do-it\n    name: Do it\n"
    lent = f"id: a\n{steps_}transitions[1]:\n  - to: b\n"
    files = {
        "beta/workflow.toon": "id: beta\nversion: 1.0.0\ntitle: B\ninitialActivity: a\n",
        "beta/activities/01-a.toon": lent,
        "beta/activities/02-b.toon": f"id: b\n{steps_}",
        "alpha/workflow.toon": (
            "id: alpha\nversion: 1.0.0\ntitle: A\ninitialActivity: a\nactivities[1]:\n  - beta/01-a.toon\n"
        ),
    }
    found = loaded(tmp_path, files, "alpha")
    assert [
        (diagnostic.code, diagnostic.file, diagnostic.line)
        for diagnostic in found.diagnostics
        if diagnostic.code in ("IL202", "IL220")
    ] == [("IL220", "beta/activities/01-a.toon", 8)]


def test_a_borrowed_activity_brings_the_skills_of_its_home(tmp_path: Path) -> None:
    head = (
        "id: other\nversion: 1.0.0\ntitle: O\ninitialActivity: look\nactivities[2]:\n"
        "  - review/01-look.toon\n  - review/02-write.toon\n"
    )
    found = loaded(tmp_path, {**TREE, "other/workflow.toon": head}, "other")
    texts = {
        (document.kind, document.ref): found.text(document.digest) for document in found.workflow.documents
    }
    assert texts["skill", "review/lead"] == TREE["review/skills/00-lead.toon"].replace("05", "review/05")
    assert texts["resource", "review/05"] == "# Guide"


NESTED = """\
id: a
version: 1.0.0
name: A
skills: [s, t]
loops:
  - id: outer
    type: forEach
    over: "{{ parts }}"
    loops:
      - {id: inner, type: forEach, over: sides, steps: [{id: paint, name: Paint}]}
    steps: [{id: pack, name: Pack, checkpoint: fits}]
    checkpoints:
      - {id: left, message: Anything left?, options: [{id: "no"}]}
      - {id: fits, message: Does it fit?, options: [{id: "yes"}]}
"""


def test_a_loop_may_have_loops_and_checkpoints_of_its_own(tmp_path: Path) -> None:
    files = {"w/workflow.yaml": HEAD_OF_ONE, "w/activities/a.yaml": NESTED}
    loaded = library(
        write(tmp_path, {**files, "w/skills/s.yaml": "id: s\n", "w/skills/t.yaml": "id: t\n"})
    ).load("w")
    assert isinstance(loaded, Loaded)
    (activity,) = loaded.workflow.activities
    assert (activity.primary_skill, activity.supporting_skills) == ("s", ("t",))
    (outer,) = activity.items
    assert isinstance(outer, Loop)
    assert (outer.items, [item.id for item in outer.body]) == ("parts", ["inner", "fits", "pack", "left"])
    assert {item.code for item in diagnostics(tmp_path)} == {"IL507", "IL508"}


def test_the_cell_of_a_table_may_hold_a_list_as_the_default(tmp_path: Path) -> None:
    rows = ["parts,array,[]", 'sizes,object,"{\\"a\\": 1}"', "word,string,[]"]
    table = "\n  ".join(["variables[3]{name,type,defaultValue}:", *rows])
    head = f"id: w\nversion: 1.0.0\ntitle: W\ninitialActivity: a\n{table}\n"
    write(tmp_path, {"w/workflow.toon": head, "w/activities/a.yaml": ONLY_ACTIVITY})
    loaded = library(tmp_path).load("w")
    assert isinstance(loaded, Loaded)
    assert [variable.default for variable in loaded.workflow.variables] == [[], {"a": 1}, "[]"]
    assert "IL514" not in {item.code for item in diagnostics(tmp_path)}


def test_an_activity_whose_file_has_errors_is_not_called_unknown(tmp_path: Path) -> None:
    broken = ONLY_ACTIVITY.replace("version: 1.0.0", "version: 1.0")
    write(
        tmp_path,
        {"w/workflow.yaml": HEAD_OF_ONE, "w/activities/a.yaml": broken, "w/skills/s.yaml": "id: s\n"},
    )
    assert [item.code for item in diagnostics(tmp_path)] == ["IL102"]


def test_skills_and_resources_may_be_in_any_format(tmp_path: Path) -> None:
    write(tmp_path, {"w/workflow.yaml": HEAD_OF_ONE, "w/activities/a.yaml": ONLY_ACTIVITY})
    write(tmp_path, {"w/skills/00-s.md": "---\nid: s\nresources: ['01', '09']\n---\n# How\n"})
    write(tmp_path, {"w/resources/01-r.yaml": "title: R\nrows: [1, 2]\n"})
    loaded = library(tmp_path).load("w")
    assert isinstance(loaded, Loaded)
    texts = {document.ref: loaded.text(document.digest) for document in loaded.workflow.documents}
    assert (texts["s"], texts["01"]) == ("# How", "title: R\nrows[2]: 1,2\n")
    assert [(item.code, item.file, item.line) for item in diagnostics(tmp_path)] == [
        ("IL207", "w/skills/00-s.md", 3)
    ]


def test_a_diagnostic_in_a_file_of_another_workflow_names_the_workflow_that_uses_it(tmp_path: Path) -> None:
    borrowing = HEAD_OF_ONE.replace("id: w", "id: v") + "activities: [w/a, w/b]\n"
    write(tmp_path, {"w/workflow.yaml": HEAD_OF_ONE, "w/activities/a.yaml": ONLY_ACTIVITY})
    write(tmp_path, {"v/workflow.yaml": borrowing, "w/skills/s.yaml": "id: s\n"})
    write(tmp_path, {"w/activities/b.yaml": ONLY_ACTIVITY.replace("id: a", "id: b")})
    assert [(item.file, item.message) for item in diagnostics(tmp_path)] == [
        ("w/activities/b.yaml", "nothing leads to the activity 'b'"),
        ("w/activities/b.yaml", "nothing leads to the activity 'b', as 'v' uses it"),
    ]


def test_the_activities_folder_may_have_another_name(tmp_path: Path) -> None:
    head = "id: odd\nversion: 1.0.0\ntitle: O\nactivitiesDir: phases\n"
    found = loaded(tmp_path, {"odd/workflow.toon": head, "odd/phases/01-write.toon": WRITE}, "odd")
    assert [activity.id for activity in found.workflow.activities] == ["write"]
    assert found.workflow.initial is None


def test_the_older_layout_has_its_head_beside_the_folder(tmp_path: Path) -> None:
    files = {
        "old.toon": "id: old\nversion: 1.0.0\ntitle: Old\n",
        "old/activities/01-write.toon": WRITE,
        "old/guides/01-how.md": "How.\n",
    }
    found = loaded(tmp_path, files, "old")
    assert [activity.id for activity in found.workflow.activities] == ["write"]
    assert [document.ref for document in found.workflow.documents if document.kind == "resource"] == ["01"]


def test_loops_over_activities_are_inlined(tmp_path: Path) -> None:
    """Rule 30."""
    loops = (
        "loops[1]:\n  - id: all\n    name: All\n    type: while\n    maxIterations: 3\n"
        "    condition:\n      type: simple\n      variable: more\n      operator: exists\n"
        "    activities[1]:\n      - write\n"
    )
    files = {
        "w/workflow.toon": "id: w\nversion: 1.0.0\ntitle: W\ninitialActivity: start\n",
        "w/activities/01-start.toon": "id: start\nversion: 1.0.0\nname: Start\n" + loops,
        "w/activities/02-write.toon": WRITE,
    }
    found = loaded(tmp_path, files, "w")
    (loop,) = activity(found, "start").items
    assert isinstance(loop, Loop)
    assert [item.id for item in loop.body] == ["draft"]
    assert "IL502" not in [diagnostic.code for diagnostic in found.diagnostics]


def test_a_loop_may_run_an_activity_that_has_such_a_loop_itself(tmp_path: Path) -> None:
    def looping(name: str, inner: str) -> str:
        return (
            f"id: {name}\nversion: 1.0.0\nname: {name}\nloops:\n"
            f"  - {{id: over-{inner}, type: while, maxIterations: 3, activities: [{inner}],\n"
            "     condition: {type: simple, variable: more, operator: ==, value: true}}\n"
        )

    files = {
        "w/workflow.yaml": "id: w\nversion: 1.0.0\ntitle: W\ninitialActivity: outer\n"
        "variables: [{name: more}]\n",
        "w/activities/01-outer.yaml": looping("outer", "middle"),
        "w/activities/02-middle.yaml": looping("middle", "inner"),
        "w/activities/03-inner.yaml": "id: inner\nversion: 1.0.0\nname: Inner\nsteps: [{id: s, name: S}]\n",
    }
    (outer,) = activity(loaded(tmp_path, files, "w"), "outer").items
    assert isinstance(outer, Loop)
    (middle,) = outer.body
    assert isinstance(middle, Loop)
    assert [step.id for step in middle.body] == ["s"]


def test_an_empty_head_file_is_reported(tmp_path: Path) -> None:
    write(tmp_path, {"w/workflow.toon": "", "v/workflow.yaml": ""})
    assert {diagnostic.file for diagnostic in diagnostics(tmp_path)} == {"v/workflow.yaml", "w/workflow.toon"}


def test_loose_toon_is_read_with_a_warning(tmp_path: Path) -> None:
    loose = WRITE.replace("steps[1]", "steps[3]")
    files = {"w/workflow.toon": "id: w\nversion: 1.0.0\ntitle: W\n", "w/activities/01-write.toon": loose}
    found = loaded(tmp_path, files, "w")
    assert [step.id for step in activity(found, "write").steps()] == ["draft"]
    assert [(diagnostic.code, diagnostic.file, diagnostic.line) for diagnostic in found.diagnostics] == [
        ("IL008", "w/activities/01-write.toon", 4)
    ]


def test_a_broken_skill_is_served_as_it_is(tmp_path: Path) -> None:
    broken = "id: lead\n[[[\n"
    found = loaded(tmp_path, {**TREE, "review/skills/00-lead.toon": broken})
    texts = {
        (document.kind, document.ref): found.text(document.digest) for document in found.workflow.documents
    }
    assert texts["skill", "lead"] == broken
    assert ("IL011", "review/skills/00-lead.toon") in [
        (diagnostic.code, diagnostic.file) for diagnostic in found.diagnostics
    ]


@pytest.mark.parametrize("link", ["review/activities/03-extra.toon", "review/resources/09-secret.md"])
def test_links_do_not_lead_out_of_the_folder(tmp_path: Path, link: str) -> None:
    outside = tmp_path / "outside.txt"
    outside.write_text(WRITE)
    folder = write(tmp_path / "in", TREE)
    (folder / link).symlink_to(outside)
    assert ("IL009", link) in [(diagnostic.code, diagnostic.file) for diagnostic in diagnostics(folder)]
    assert str(tmp_path) not in str(diagnostics(folder))


@pytest.mark.parametrize("reference", ["../../x/01-a.toon", "/etc/passwd", "..%2f/x.toon", "a\\\\b.toon"])
def test_references_do_not_lead_out_of_the_folder(tmp_path: Path, reference: str) -> None:
    head = f'id: w\nversion: 1.0.0\ntitle: W\nactivities[1]:\n  - "{reference}"\n'
    write(tmp_path, {"w/workflow.toon": head})
    assert [diagnostic.code for diagnostic in diagnostics(tmp_path)] == ["IL216"]


def test_an_activities_folder_outside_is_ignored(tmp_path: Path) -> None:
    head = 'id: w\nversion: 1.0.0\ntitle: W\nactivitiesDir: "../../other"\n'
    write(tmp_path, {"in/w/workflow.toon": head, "other/01-write.toon": WRITE})
    found = Library([Source("configured", tmp_path / "in")]).listing().diagnostics
    assert [item.code for item in found] == ["IL106"]


@pytest.mark.slow
@settings(
    max_examples=200,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    deadline=None,
)
@given(st.sampled_from(sorted(TREE)), st.data())
def test_damage_to_a_folder_gives_diagnostics_and_no_exception(
    tmp_path: Path, name: str, data: st.DataObject
) -> None:
    text = TREE[name]
    cut = data.draw(st.integers(0, len(text)))
    middle = data.draw(
        st.text(max_size=10) | st.sampled_from(["[9]:", "\n  - ", '"', "|\n", "[]", "{}", "null"])
    )
    damaged = text[:cut] + middle + text[cut + data.draw(st.integers(0, 20)) :]
    files = {**TREE, name: damaged.encode(errors="replace").decode()}
    listing = library(write(tmp_path, files)).listing()
    named = {diagnostic.workflow_id for diagnostic in listing.diagnostics if diagnostic.severity == "error"}
    assert all(diagnostic.line >= 1 and diagnostic.file in files for diagnostic in listing.diagnostics)
    assert len(listing.entries) + len(named) >= 2


@pytest.mark.parametrize("sign", ["graph", "kind"])
def test_a_folder_of_the_newer_generation_is_one_error_that_names_the_format(
    tmp_path: Path, sign: str
) -> None:
    folder = tmp_path / "newer"
    (folder / "activities").mkdir(parents=True)
    head = "id: newer\nversion: 1.0.0\ntitle: Newer\nrules: { workflow: [Be brief.] }\ninitialActivity: a\n"
    (folder / "workflow.yaml").write_text(head + ("graph: { a: { done: b } }\n" if sign == "graph" else ""))
    for name in ("a", "b"):
        (folder / "activities" / f"01-{name}.yaml").write_text(
            f"id: {name}\nversion: 1.0.0\nname: {name}\n"
            "variables: { reads: [x], writes: [{ name: y, type: string }] }\n"
            "steps:\n  - { kind: technique, id: one, technique: { name: t }, when: x }\n"
            "  - { kind: checkpoint, id: ask, options: { go: { exit: done } } }\n"
            "exits: [{ id: done, isDefault: true }]\n"
        )
    listing = Library([Source("configured", tmp_path)], tmp_path / "cache").listing()
    errors = [diagnostic for diagnostic in listing.diagnostics if diagnostic.severity == "error"]
    assert [(error.code, error.file) for error in errors] == [("IL111", errors[0].file)]
    assert "newer format" in errors[0].message
    assert "Interlock's YAML" in errors[0].next_action
