"""Unknown fields, contracts and variables: errors in files of our own form and in YAML that mistypes one."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import toon_format

from interlock.authoring.library import Diagnostic
from support.authored import diagnostics, head, library, step, write
from support.cli_process import interlock
from support.every_field import write_every_field

STEP = {"id": "ask", "title": "Ask", "prompt": "Ask."}
DECLARED = [{"name": "risky", "type": "boolean", "defaultValue": False}]
EACH = {"type": "forEach", "items": "probes", "itemVar": "check", "maxIterations": 3}
OURS = "# Reviewed by the team.\n# yaml-language-server: $schema=./.schemas/step-workflow.schema.json\n"
CHECKS = [{"name": "probes", "type": "array", "required": True}]


def with_step(**fields: Any) -> dict[str, Any]:
    return head({**STEP, **fields}, variables=DECLARED)


def in_loop(prompt: str, config: dict[str, Any] = EACH) -> dict[str, Any]:
    body = [{**STEP, "prompt": prompt}]
    return head({"id": "l", "type": "loop", "title": "L", "loop": config, "body": body}, variables=CHECKS)


def asking(message: str, **option: Any) -> dict[str, Any]:
    options = [{"id": "y", "effect": {"setVariable": {"risky": True}}, **option}, {"id": "n"}]
    gate = {"id": "g", "type": "gate", "message": message, "options": options}
    return head(STEP, gate, variables=DECLARED)


def sized(
    effect: dict[str, Any] | None = None, size: dict[str, Any] | None = None, **fields: Any
) -> dict[str, Any]:
    """A workflow whose variable `size` has a closed list of values."""
    options = [{"id": "y", "effect": effect or {"setVariable": {"size": "small"}}}, {"id": "n"}]
    gate = {"id": "g", "type": "gate", "message": "Is it?", "options": options}
    declared = {"name": "size", "type": "string", "values": ["small", "large"], **(size or {})}
    return head({**STEP, "sets": ["size"]}, gate, {**STEP, "id": "do", **fields}, variables=[declared])


TYPOS: dict[str, tuple[str, dict[str, Any], str]] = {
    "field": ("IL105", with_step(runConditon={"var": "risky", "equals": True}), "runCondition"),
    "field at the top": ("IL105", {**with_step(), "metaGuidanse": ["x"]}, "metaGuidance"),
    "contract": ("IL205", with_step(output={"contractRef": "wr.contracts.gate_verdit"}), "gate_verdict"),
    "variable in a condition": ("IL507", with_step(runCondition={"var": "riksy", "equals": True}), "risky"),
    "variable in a prompt": ("IL513", in_loop("Run {{chek.name}}."), "check"),
    "variable in a question": ("IL513", asking("Is {{riskyy}} right?"), "risky"),
    "variable in an option": ("IL513", asking("Is it?", label="Take {{riskyy}}"), "risky"),
    "variable in an effect": (
        *("IL513", asking("Is it?", effect={"setVariable": {"risky": "{{riskyy}}"}})),
        "risky",
    ),
    "variable in a user's question": (
        "IL513",
        with_step(userInput=[{"reason": "needs_user_choice", "key": "risky", "question": "Is {{riskyy}}?"}]),
        "risky",
    ),
    "variable that a step sets": ("IL507", with_step(sets=["riksy"]), "risky"),
    "variable of a confirmation": (
        "IL507",
        with_step(requireConfirmation={"var": "riksy", "equals": True}),
        "risky",
    ),
    "variable of a fragment": (
        "IL507",
        with_step(promptFragments=[{"id": "f", "text": "F.", "when": {"var": "riksy", "equals": True}}]),
        "risky",
    ),
    "variable of a check": (
        *("IL507", with_step(checks=[{"id": "t", "run": "true", "when": {"var": "riksy", "equals": True}}])),
        "risky",
    ),
    "variable of a rule": (
        "IL507",
        with_step(
            validationCriteria=[
                {"type": "contains", "value": "ok", "condition": {"var": "riksy", "equals": True}}
            ]
        ),
        "risky",
    ),
    "variable of a count": (
        "IL507",
        in_loop("Run.", {"type": "for", "count": "proebs", "maxIterations": 3}),
        "probes",
    ),
    "type in a condition": (
        "IL514",
        with_step(runCondition={"var": "risky", "equals": "ture"}),
        "declared type",
    ),
    "type in a list": ("IL514", with_step(runCondition={"var": "risky", "in": ["maybe"]}), "declared type"),
    "type of a default": (
        *("IL514", head(STEP, variables=[{"name": "risky", "type": "boolean", "defaultValue": "no"}])),
        "declared type",
    ),
    "type of an effect": (
        *("IL514", asking("Is it?", effect={"setVariable": {"risky": "yes"}})),
        "declared type",
    ),
    "value in a condition": ("IL514", sized(runCondition={"var": "size", "equals": "larg"}), "'large'"),
    "value in a list": ("IL514", sized(runCondition={"var": "size", "in": ["small", "larg"]}), "'large'"),
    "value of a default": ("IL514", sized(size={"defaultValue": "smal"}), "'small'"),
    "value of an action": (
        *("IL514", sized(actions=[{"action": "set", "target": "size", "value": "larg"}])),
        "'large'",
    ),
    "value of an effect": ("IL514", sized(effect={"setVariable": {"size": "larg"}}), "'large'"),
    "value of another type": ("IL514", sized(size={"values": ["small", 5]}), "declared type"),
    "keyword of a schema": (
        "IL105",
        with_step(
            output={"kind": "x", "schema": {"type": "object", "requierd": ["y"]}, "example": {"kind": "x"}}
        ),
        "required",
    ),
    "feature": ("IL212", {**with_step(), "features": ["wr.features.memory"]}, "memory_context"),
    "reference": (
        "IL213",
        with_step(prompt=[{"kind": "ref", "refId": "wr.refs.memry_usage"}]),
        "memory_usage",
    ),
}
UNLIKE_ANY: dict[str, tuple[str, dict[str, Any], str]] = {
    "field": ("IL105", with_step(owner="ops"), "remove it"),
    "contract": ("IL205", with_step(output={"contractRef": "team.handoff"}), "output.schema"),
    "variable without declarations": (
        *("IL507", head({**STEP, "runCondition": {"var": "risky", "equals": True}})),
        "declare",
    ),
    "variable beside declared ones": (
        *("IL507", with_step(runCondition={"var": "taskScope", "equals": "x"})),
        "declare",
    ),
}
every_typo = pytest.mark.parametrize(("code", "workflow", "fix"), TYPOS.values(), ids=TYPOS)


def found(folder: Path, file: str, workflow: dict[str, Any]) -> list[Diagnostic]:
    write(folder, {file: json.dumps(workflow, indent=1)})  # JSON is YAML too
    return diagnostics(folder)


@pytest.mark.parametrize(("code", "workflow", "fix"), UNLIKE_ANY.values(), ids=UNLIKE_ANY)
@pytest.mark.parametrize(("comment", "severity"), [("", "warning"), (OURS, "error")])
def test_a_name_that_resembles_none_may_be_meant_for_another_server(
    tmp_path: Path, comment: str, severity: str, code: str, workflow: dict[str, Any], fix: str
) -> None:
    write(tmp_path, {"w.yaml": comment + json.dumps(workflow, indent=1)})
    (diagnostic,) = diagnostics(tmp_path)
    assert (diagnostic.code, diagnostic.severity, fix in diagnostic.next_action) == (code, severity, True)
    assert bool(library(tmp_path).listing().entries) == (severity == "warning")


@every_typo
@pytest.mark.parametrize("file", ["w.yaml", "w.yml"])
def test_it_is_an_error_in_yaml(
    tmp_path: Path, file: str, code: str, workflow: dict[str, Any], fix: str
) -> None:
    (diagnostic,) = found(tmp_path, file, workflow)
    assert (diagnostic.code, diagnostic.severity) == (code, "error")
    assert fix in diagnostic.next_action
    assert library(tmp_path).listing().entries == ()


@every_typo
def test_it_is_an_error_in_json_that_names_our_schema(
    tmp_path: Path, code: str, workflow: dict[str, Any], fix: str
) -> None:
    ours = {"$schema": "./.schemas/step-workflow.schema.json", **workflow}
    assert [(item.code, item.severity) for item in found(tmp_path, "w.json", ours)] == [(code, "error")]


@every_typo
@pytest.mark.parametrize(
    ("file", "mark"),
    [("w.json", {}), ("w.json", {"$schema": "https://host.example/v2.json"}), ("w.yaml", {"$lenient": True})],
)
def test_it_is_a_warning_elsewhere(
    tmp_path: Path, file: str, mark: dict[str, Any], code: str, workflow: dict[str, Any], fix: str
) -> None:
    assert [(item.code, item.severity) for item in found(tmp_path, file, {**mark, **workflow})] == [
        (code, "warning")
    ]
    assert [entry.id for entry in library(tmp_path).listing().entries] == ["t.w"]


@pytest.mark.parametrize(
    "fields",
    [
        {"runCondition": {"var": "risky", "equals": "yes"}},
        {"runCondition": {"var": "risky", "equals": None}},
        {"runCondition": {"var": "count", "equals": "5"}},
        {"runCondition": {"var": "name", "equals": 5}},
        {"runCondition": {"var": "risky.part", "equals": "any"}},
    ],
)
def test_a_value_that_lenient_equality_accepts_is_right(tmp_path: Path, fields: dict[str, Any]) -> None:
    others = [{"name": "count", "type": "number", "required": True}, {"name": "name", "required": True}]
    workflow = head({**STEP, **fields}, {**STEP, "id": "b"}, variables=[*DECLARED, *others])
    assert found(tmp_path, "w.yaml", workflow) == []


@pytest.mark.parametrize(
    ("condition", "fix"),
    [
        ({"all": [{"var": "risky"}]}, "use 'and'"),
        ({"variable": "risky", "equals": True}, "write 'var' beside 'equals'"),
        ("risky", "write it as {var: risky, equals: …}"),
        ({"var": "risky", "in": "x"}, "write it as [x]"),
        ("risky == true", 'write it as {variable: risky, operator: "==", value: true}'),
        ({"var": "risky", "and": [{"var": "risky"}]}, "write both as parts of one 'and'"),
    ],
)
def test_a_condition_that_cannot_be_read_comes_with_its_fix(tmp_path: Path, condition: Any, fix: str) -> None:
    (diagnostic,) = found(tmp_path, "w.yaml", with_step(runCondition=condition))
    assert (diagnostic.code, fix in diagnostic.next_action) == ("IL301", True)


def test_it_is_an_error_in_the_markdown_of_a_step(tmp_path: Path) -> None:
    files = {
        "w/workflow.yaml": "id: t.w\nname: W\nversion: 1.0.0\nsteps: [ask]\n",
        "w/steps/ask.md": "---\ntitle: Ask\nrunConditon: {var: x}\n---\nAsk.\n",
    }
    write(tmp_path, files)
    (diagnostic,) = diagnostics(tmp_path)
    assert (diagnostic.code, diagnostic.severity, diagnostic.file) == ("IL105", "error", "w/steps/ask.md")


def test_all_errors_of_a_file_are_reported_at_once(tmp_path: Path) -> None:
    workflow = {**with_step(runConditon=1, output={"contractRef": "x.y"}), "nmae": 1}
    assert [item.code for item in found(tmp_path, "w.yaml", workflow)] == ["IL105", "IL205", "IL105"]


@pytest.mark.parametrize(
    "prompt",
    [
        "Set `outcome` in context. Then show {{outcome.text}}.",
        "Work on {{goal}}.",
        "Round {{risky}}.",
    ],
)
def test_a_variable_that_a_text_mentions_is_known(tmp_path: Path, prompt: str) -> None:
    assert found(tmp_path, "w.yaml", with_step(prompt=prompt)) == []


def test_the_severity_is_printed_in_words(tmp_path: Path) -> None:
    write(tmp_path, {"w.yaml": json.dumps(with_step(runConditon=1))})
    write(tmp_path, {"v.json": json.dumps({**with_step(runConditon=1), "id": "t.v"})})
    ran = interlock(tmp_path / "data", "validate", str(tmp_path / "w.yaml"), str(tmp_path / "v.json"))
    assert ran.code == 1
    assert " error IL105 unknown field 'runConditon'" in ran.out
    assert " warning IL105 unknown field 'runConditon'" in ran.out


def test_diagnostics_are_printed_as_sarif(tmp_path: Path) -> None:
    write(tmp_path, {"a b.yaml": json.dumps(with_step(runConditon=1))})
    ran = interlock(tmp_path / "data", "validate", "--format", "sarif", str(tmp_path / "a b.yaml"))
    assert (ran.code, ran.json["version"]) == (1, "2.1.0")
    (run,) = ran.json["runs"]
    (result,) = run["results"]
    assert (result["ruleId"], result["level"]) == ("IL105", "error")
    assert run["tool"]["driver"]["rules"][result["ruleIndex"]]["id"] == "IL105"
    location = result["locations"][0]["physicalLocation"]
    assert location["artifactLocation"]["uri"].endswith("/a%20b.yaml")
    assert location["region"]["startLine"] == 1


def test_nothing_wrong_is_sarif_without_results(tmp_path: Path) -> None:
    write(tmp_path, {"w.yaml": json.dumps(with_step())})
    ran = interlock(tmp_path / "data", "validate", "--format", "sarif", str(tmp_path / "w.yaml"))
    assert (ran.code, ran.json["runs"][0]["results"]) == (0, [])


FIXES = {
    "a word for equals": (
        "  - {id: a, title: A, prompt: P, runCondition: {var: goal, eq: 1}}\n",
        "use 'equals'",
    ),
    "a sign for an operator": (
        "  - {id: a, title: A, prompt: P, runCondition: {var: goal, '>=': 1}}\n",
        "use 'gte'",
    ),
    "no such operator": (
        "  - {id: a, title: A, prompt: P, runCondition: {var: goal, resembles: 1}}\n",
        "use one of: equals, not_equals,",
    ),
    "a word for an activity's operator": (
        "  - {id: a, title: A, prompt: P, runCondition: {variable: goal, operator: equal, value: 1}}\n",
        "use '=='",
    ),
    "gates": (
        "  - {type: gates, id: g, message: Go on?, options: [{id: y}, {id: n}]}\n",
        "did you mean 'gate'?",
    ),
    "no such item": ("  - {type: robot, id: g}\n", "use one of: step, parallel, gate, checkpoint, loop"),
}


@pytest.mark.parametrize(("item", "fix"), FIXES.values(), ids=FIXES)
def test_a_fix_names_the_word_to_write(tmp_path: Path, item: str, fix: str) -> None:
    write(tmp_path, {"w.yaml": "id: t.w\nname: W\nversion: 1.0.0\nsteps:\n" + item})
    (diagnostic,) = diagnostics(tmp_path)
    assert fix in diagnostic.next_action


SYNTAX = {
    "colon in a text": ("steps:\n  - id: one\n    title: One: two\n", 3, 15, "put the text in quotes"),
    "tab": ("steps:\n\t- id: one\n", 2, 1, "indent with spaces"),
    "reserved character": ("name: @team\n", 1, 7, "put the text in quotes"),
    "open quote": ('name: W\ntitle: "One\nsteps: []\n', 2, 8, "close the quote"),
    "open bracket": ("name: W\ntags: [a,\n  b\nsteps: []\n", 2, 7, "close the bracket"),
    "indentation": ("steps:\n  - id: one\n   title: One\n", 3, 4, "same indentation"),
    "missing colon": ("name: W\nsteps\n  - id: one\n", 2, 1, "add ':' after the name"),
    "escape": ('name: "C:\\Users"\n', 1, 12, "single quotes"),
}


@pytest.mark.parametrize(("text", "line", "column", "fix"), SYNTAX.values(), ids=SYNTAX)
def test_an_error_of_yaml_syntax_says_what_to_do(
    tmp_path: Path, text: str, line: int, column: int, fix: str
) -> None:
    write(tmp_path, {"w.yaml": text})
    (diagnostic,) = diagnostics(tmp_path)
    assert fix in diagnostic.next_action
    assert (diagnostic.code, diagnostic.line, diagnostic.column) == ("IL004", line, column)
    assert "token" not in diagnostic.message
    assert "node" not in diagnostic.message


MODES = (
    "id: w\nversion: 1.0.0\ntitle: W\ninitialActivity: a\nvariables: [{name: quick, type: boolean}]\nmodes:\n"
)
ONE = "id: a\nversion: 1.0.0\nname: A\nsteps: [{id: s, name: S, description: Set quick.}]\n"


@pytest.mark.parametrize(
    ("mode", "activity", "code", "fix"),
    [
        ("{id: q, name: Q, activationVariable: quik}", ONE, "IL507", "did you mean 'quick'?"),
        (
            *("{id: q, name: Q, activationVariable: quick, skipActivities: [bb]}", ONE),
            *("IL202", "use one of: a"),
        ),
        (
            *(
                "{id: q, name: Q, activationVariable: quick}",
                "# yaml-language-server: $schema=../.schemas/activity.schema.json\n"
                + ONE.replace("name: S,", "name: S, checkpoint: g,"),
            ),
            *("IL204", "correct the id"),
        ),
    ],
    ids=["mode variable", "skipped activity", "checkpoint of a step"],
)
def test_an_unknown_name_in_an_activity_folder_is_an_error(
    tmp_path: Path, mode: str, activity: str, code: str, fix: str
) -> None:
    write(tmp_path, {"w/workflow.yaml": f"{MODES}  - {mode}\n", "w/activities/01-a.yaml": activity})
    (diagnostic,) = diagnostics(tmp_path)
    assert (diagnostic.code, diagnostic.severity) == (code, "error")
    assert fix in diagnostic.next_action


# A sweep over every field of the formats that others write: one name at a time is misspelt.

PADDING = {"deep": [1, "two"]}  # of every_field: names that no source type has
OWN_NAMES = (
    "args",
    "contextMapping",
    "skillArgs",
    "skill_args",
    "example",
    "setVariable",
    "defaults",
    "artifactLocations",
    "rules",
)
AS_IT_IS = ("executionModel",)  # returned, never read


def without_padding(value: Any) -> Any:
    if isinstance(value, dict):
        kept = {name: entry for name, entry in value.items() if entry != PADDING and name != "$lenient"}
        return {name: without_padding(entry) for name, entry in kept.items()}
    return [without_padding(entry) for entry in value] if isinstance(value, list) else value


def misspelt(name: str) -> str:
    """Swap the last two letters, or leave the last one out where they are equal."""
    return name[:-2] + name[-1] + name[-2] if name[-1] != name[-2] else name[:-1]


def with_typos(value: Any, within: str = "") -> Iterator[tuple[str, str, Any]]:
    """Yield every name with what it stands in, and the value with this name misspelt."""
    if isinstance(value, list):
        for index, entry in enumerate(value):
            for home, name, changed in with_typos(entry, within):
                yield home, name, [*value[:index], changed, *value[index + 1 :]]
    if not isinstance(value, dict) or within in AS_IT_IS:
        return
    for name, entry in value.items():
        if within not in OWN_NAMES:
            renamed = {misspelt(key) if key == name else key: held for key, held in value.items()}
            yield within, name, renamed
        for home, inner, changed in with_typos(entry, name):
            yield home, inner, {**value, name: changed}


@pytest.mark.slow
def test_no_misspelt_field_stays_silent_in_a_file_of_others(tmp_path: Path) -> None:
    """Steps in JSON, and an activity folder in TOON; what the first has shown is not tried again."""
    given = write_every_field(tmp_path / "given")
    written = {path: without_padding(json.loads(path.read_text())) for path in given.rglob("*.[jy]*")}
    told: set[tuple[str, str]] = set()
    silent: set[tuple[str, str]] = set()
    for form in ("json", "toon"):
        folder = tmp_path / form
        write(folder, {"every-field/resources/00-notes.md": "# Notes\n"})
        files: dict[Path, Any] = {}
        for path, value in written.items():
            if (path.suffix == ".json") == (form == "json"):
                target = folder / path.relative_to(given).with_suffix(f".{form}")
                is_target = path.stem in ("02-second", "03-third")  # of transitions; like the first
                files[target] = {name: value[name] for name in ("id", "name")} if is_target else value
                save(target, files[target])
        before = set(diagnostics(folder))
        for path, value in files.items():
            for home, name, changed in with_typos(value):
                if (home, name) in told:
                    continue
                save(path, changed)
                fixes = [diagnostic.next_action for diagnostic in set(diagnostics(folder)) - before]
                (told if any(f"'{name}'" in fix for fix in fixes) else silent).add((home, name))
            save(path, value)
    assert len(told) > 150
    assert silent - told == set()


def save(path: Path, value: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value) if path.suffix == ".json" else toon_format.encode(value))


def test_a_line_with_a_colon_that_is_not_quoted_is_named_and_its_text_kept(tmp_path: Path) -> None:
    text = "- {id: ask, title: Ask, promptBlocks: {procedure: [Wait for it: then go.]}}\n"
    write(tmp_path, {"w.yaml": "id: t.w\nname: W\nversion: 1.0.0\nsteps:\n  " + text})
    (found,) = diagnostics(tmp_path)
    assert (found.code, found.severity, found.next_action) == ("IL105", "error", "put the line in quotes")
    (tmp_path / "w.yaml").write_text((tmp_path / "w.yaml").read_text() + "$lenient: true\n")
    loaded = library(tmp_path).load("t.w")
    assert not isinstance(loaded, Diagnostic)
    assert "Wait for it: then go." in step(loaded, "ask").prompt[0].text


ANSWERS = {"setVariable": {"verdict": "rethink"}}, {"setVariable": {"verdict": "go"}}


def decided(condition: dict[str, Any], *variables: dict[str, Any]) -> dict[str, Any]:
    """A step behind a condition on what only a gate's answers set."""
    options = [{"id": f"o{number}", "effect": effect} for number, effect in enumerate(ANSWERS)]
    gate = {"id": "g", "type": "gate", "message": "Go?", "options": options}
    return head(STEP, gate, {**STEP, "id": "do", "runCondition": condition}, variables=list(variables))


def test_a_value_that_is_listed_twice_is_redundant(tmp_path: Path) -> None:
    write(tmp_path, {"w.yaml": json.dumps(sized(size={"values": ["small", "large", "small"]}))})
    assert [(item.code, item.severity) for item in diagnostics(tmp_path)] == [("IL109", "warning")]


def test_a_value_of_the_list_can_be_compared_and_one_that_no_answer_sets_is_told_once(tmp_path: Path) -> None:
    verdict = {**VERDICT, "values": ["open", "go", "rethink", "halt"]}
    for value, codes in (("go", []), ("halt", ["IL304"]), ("stop", ["IL514"])):
        write(tmp_path, {"w.yaml": OURS + json.dumps(decided({"var": "verdict", "equals": value}, verdict))})
        assert [item.code for item in diagnostics(tmp_path)] == codes


VERDICT = {"name": "verdict", "type": "string", "defaultValue": "open"}
SIZE = {"name": "size", "type": "string", "required": True}
LATE = {"name": "late", "type": "boolean", "required": True}


@pytest.mark.parametrize(
    ("condition", "message", "fix"),
    [
        ({"var": "verdict", "equals": "rethnik"}, "'verdict' is never 'rethnik'", "did you mean 'rethink'?"),
        ({"var": "verdict", "in": ["go", "gone"]}, "'verdict' is never 'gone'", "correct the condition"),
        ({"var": "verdict", "not_equals": "opne"}, "'verdict' is never 'opne'", "did you mean 'open'?"),
        ({"not": {"var": "verdict", "equals": "x"}}, "'verdict' is never 'x'", "correct the condition"),
        ({"var": "size", "gt": "low"}, "'low' is not a number", "correct the value or the operator"),
        ({"var": "late", "gt": 3}, "it is declared as boolean", "correct the value or the operator"),
        (
            {"var": "late", "startsWith": "y"},
            "it is declared as boolean",
            "correct the value or the operator",
        ),
    ],
)
def test_a_guard_that_can_never_hold_is_an_error(
    tmp_path: Path, condition: dict[str, Any], message: str, fix: str
) -> None:
    variables = [VERDICT, SIZE, LATE]
    write(tmp_path, {"w.yaml": OURS + json.dumps(decided(condition, *variables))})
    found = [item for item in diagnostics(tmp_path) if item.code == "IL304"]
    assert [(item.severity, item.next_action) for item in found] == [("error", fix)]
    assert message in found[0].message


@pytest.mark.parametrize(
    "condition",
    [
        {"var": "verdict", "equals": "Rethink "},
        {"var": "verdict", "equals": "open"},
        {"var": "verdict", "in": ["go", "open"]},
        {"var": "size", "gt": "5"},
        {"var": "size", "equals": "anything"},
    ],
)
def test_a_guard_that_can_hold_is_none(tmp_path: Path, condition: dict[str, Any]) -> None:
    write(tmp_path, {"w.yaml": json.dumps(decided(condition, VERDICT, SIZE, LATE))})
    assert [item.code for item in diagnostics(tmp_path)] == []


@pytest.mark.parametrize(("value", "severity"), [("rethnik", "error"), ("elsewhere", "warning")])
def test_in_yaml_that_may_be_for_another_server_only_a_misspelling_is_an_error(
    tmp_path: Path, value: str, severity: str
) -> None:
    write(tmp_path, {"w.yaml": json.dumps(decided({"var": "verdict", "equals": value}, VERDICT))})
    assert [(item.code, item.severity) for item in diagnostics(tmp_path)] == [("IL304", severity)]


def test_what_a_step_or_an_answer_fills_in_can_have_any_value(tmp_path: Path) -> None:
    condition = {"var": "verdict", "equals": "rethnik"}
    by_step = decided(condition, VERDICT)
    by_step["steps"][0] = {**STEP, "sets": ["verdict"]}
    by_answer = decided(condition, VERDICT, SIZE)
    by_answer["steps"][1]["options"][0]["effect"] = {"setVariable": {"verdict": "{{size}}"}}
    for number, flow in enumerate((by_step, by_answer)):
        folder = tmp_path / str(number)
        write(folder, {"w.yaml": json.dumps(flow)})
        assert [item.code for item in diagnostics(folder)] == []
