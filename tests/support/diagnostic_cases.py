"""The smallest file for each diagnostic code. The mark § stands where the diagnostic must point."""
# ruff: noqa: E501 - a table reads better with one case a line

from __future__ import annotations

MARK = "§"

HEAD = "id: t.w\nname: W\nversion: 1.0.0\n"
STEP = "  - {id: ask, title: Ask, prompt: Ask.}\n"
ONE = HEAD + "steps:\n" + STEP
FLOW = "id: w\nversion: 1.0.0\ntitle: W\ninitialActivity: a\n"
ACT = "id: a\nname: A\nsteps:\n  - {id: s, name: S, description: Do it.}\n"
BARE = "id: w\nversion: 1.0.0\ntitle: W\n"
ACT_B = ACT.replace("id: a\nname: A", "id: b\nname: B")
VARS = (
    FLOW
    + "variables:\n  - {name: known, type: boolean, defaultValue: false}\n  - {name: idle, type: boolean}\n"
)
SKILLED = "skills: {primary: k}\n"


def whole(old: str, new: str) -> dict[str, str]:
    """A step workflow with one thing replaced."""
    return {"w.yaml": ONE.replace(old, new)}


def step(fields: str) -> dict[str, str]:
    """A step workflow with a step of these fields."""
    return {"w.yaml": HEAD + "steps:\n  - {id: ask, title: A, " + fields + "}\n"}


def loop(config: str, body: str = "[{id: b, title: B, prompt: P}]") -> dict[str, str]:
    return {"w.yaml": HEAD + f"steps:\n  - {{id: l, type: loop, title: L, loop: {config}, body: {body}}}\n"}


def activity(rest: str, head: str = FLOW) -> dict[str, str]:
    """An activity workflow whose activity ends with these fields."""
    return {"w/workflow.yaml": head, "w/activities/a.yaml": ACT + rest}


def exits(*transitions: str) -> str:
    return "transitions:\n" + "".join(f"  - {transition}\n" for transition in transitions)


def gate(fields: str) -> dict[str, str]:
    return {
        "w/workflow.yaml": FLOW,
        "w/activities/a.yaml": "id: a\nname: A\nsteps:\n  - {id: g, type: gate, message: M, "
        + fields
        + "}\n",
    }


CASES: dict[str, dict[str, str]] = {
    "IL002": {"w.yaml": "§#" + "x" * 1_000_001},
    "IL003": {"w.json": '{"steps": ' + "[" * 64 + "§" + "[" * 6 + "]" * 70 + "}"},
    "IL004": {"w.json": '{"steps": [§}'},
    "IL005": {"w.json": '{"steps": §"\\u0000"}'},
    "IL006": {"w.yaml": ONE + "§name: X\n"},
    "IL007": {"w.yaml": "steps: §!!set {}\n"},
    "IL008": {"w/workflow.yaml": FLOW, "w/activities/a.toon": "id: a\nname: A\n§steps[2]:\n  - id: s\n    name: S\n    description: D\n"},
    "IL010": {"w.json": '{"steps": §1e999}'},
    "IL011": {**activity(SKILLED), "w/skills/00-k.toon": "id: k\n§[[[\n"},
    "IL101": {"w.yaml": "§" + ONE.replace("name: W\n", "")},
    "IL102": whole("1.0.0", "§1.0"),
    "IL103": loop("{type: §whyle, maxIterations: 1}"),
    "IL104": whole("name: W", "name: §" + "W" * 129),
    "IL105": {"w.json": '{"id": "t.w", "name": "W", "version": "1.0.0", §"nmae": "x", "steps": [{"id": "ask", "title": "A", "prompt": "P"}]}'},
    "IL106": {"w.yaml": HEAD + "steps: §[]\n"},
    "IL107": whole("1.0.0", "§one"),
    "IL108": loop("{type: for, count: 1, maxIterations: §0}"),
    "IL109": {"w.yaml": ONE + "metaGuidance: [a, §a]\n"},
    "IL110": {"w.yaml": HEAD + "steps:\n  - §{id: ask, title: A}\n"},
    "IL111": {"w/workflow.yaml": "§" + FLOW, "w/activities/a.yaml": "id: a\nversion: 1.0.0\nname: A\nsteps: [{kind: technique, id: one, technique: t}]\nexits: [{id: done}]\n"},
    "IL201": gate("options: [{id: x}, {id: §x, effect: {transitionTo: a}}]"),
    "IL202": activity(exits("{to: §bb, isDefault: true}")),
    "IL225": {"w/workflow.yaml": "§" + BARE, "w/activities/a.yaml": ACT + exits("{to: b}"), "w/activities/b.yaml": ACT_B},
    "IL226": {"w/workflow.yaml": "§" + BARE, "w/activities/a.yaml": ACT + exits("{to: b}"), "w/activities/b.yaml": ACT_B + exits("{to: a}")},
    "IL203": loop("{type: for, count: 1, maxIterations: 2}", "§asc"),
    "IL204": {"w/workflow.yaml": FLOW, "w/activities/a.yaml": "$lenient: true\n" + ACT.replace("Do it.", "D, checkpoint: §no")},
    "IL205": {"w.json": '{"id": "t.w", "name": "W", "version": "1.0.0", "steps": [{"id": "ask", "title": "A", "prompt": "P", "output": {"contractRef": §"x.y"}}]}'},
    "IL206": activity("skills: {primary: §nobody}\n"),
    "IL207": {**activity(SKILLED), "w/skills/00-k.toon": "id: k\nresources[1]:\n  §- 09\n"},
    "IL208": step("prompt: P, functionReferences: [§f()]"),
    "IL209": step("prompt: P, assessmentRefs: [§r]"),
    "IL210": step("templateCall: {templateId: §x}"),
    "IL211": step("templateCall: §{templateId: wr.templates.capability_probe}"),
    "IL212": {"w.yaml": ONE + "$lenient: true\nfeatures: [§x]\n"},
    "IL222": {
        "routines/r.json": '{"id": "t.routine-r", "name": "R", "version": "1.0.0", "capabilities": {"delegation": "preferred"}, "steps": [{"id": "s", "title": "S", "prompt": "P"}]}',
        "w.yaml": HEAD + "$lenient: true\nsteps:\n  - {id: ask, templateCall: §{templateId: wr.templates.routine.r}}\n",
    },
    "IL223": {
        "routines/r.yaml": "id: t.routine-r\nname: R\nversion: 1.0.0\nsteps:\n  - §{id: on, templateCall: {templateId: wr.templates.routine.r}}\n",
    },
    "IL224": activity("artifacts: [{id: f, name: F, location: §plnning}]\n", FLOW + "artifactLocations: {planning: docs}\n"),
    "IL221": {"w.yaml": ONE + "features: [{id: wr.features.output_contracts, config: {attempts: §9}}]\n"},
    "IL213": {"w.json": '{"id": "t.w", "name": "W", "version": "1.0.0", "steps": [{"id": "ask", "title": "A", "prompt": [{"kind": "ref", "refId": §"x"}]}]}'},
    "IL214": gate("options: [{id: x}], defaultOption: §y"),
    "IL215": {"w.yaml": ONE + STEP.replace("ask", "§ask")},
    "IL216": activity("", FLOW + "activities: [§o/x.toon]\n"),
    "IL217": {"w/workflow.yaml": ONE, "w/steps/x.md": "§X\n"},
    "IL218": activity("triggers: {workflow: §nobody}\n"),
    "IL227": gate("options: [{id: x}], decide: {by: [ada], within: 1h, §then: {option: y}}"),
    "IL228": gate("options: [{id: x}], decide: {by: [ada], atLeast: §2}"),
    "IL219": {"w.yaml": HEAD + "assessments: [{id: r, dimensions: [{id: d, levels: [low, high]}]}]\nsteps:\n  - {id: ask, title: A, prompt: P, assessmentRefs: [r], assessmentConsequences: [{when: {anyEqualsLevel: §lo}, effect: {guidance: G}}]}\n"},
    "IL301": step("prompt: P, runCondition: {var: x, §eqals: 1}"),
    "IL302": step("prompt: P, validationCriteria: §'('"),
    "IL303": step("prompt: P, validationCriteria: §'(?=a)'"),
    "IL304": {"w.yaml": HEAD + "$lenient: true\nsteps:\n  - {id: ask, title: A, prompt: Judge x., runCondition: §{and: [{var: x, equals: 1}, {var: x, equals: 2}]}}\n"},
    "IL305": loop("§{type: for, count: 1}"),
    "IL306": loop("§{type: while, maxIterations: 2}"),
    "IL307": loop("§{type: while, maxIterations: 2, conditionSource: {kind: artifact_contract}}"),
    "IL308": step("prompt: P, output: {kind: k, schema: {allOf: [{$ref: §'http://host.example/s'}]}}"),
    "IL401": whole("t.w", "§T.W"),
    "IL402": whole("t.w", "§w"),
    "IL403": whole("t.w", "§wr.w"),
    "IL404": {"v.yaml": ONE, "w.yaml": "§" + ONE},
    "IL405": {"w.yaml": ONE.replace("t.w", "t-w.x"), "x.yaml": ONE.replace("t.w", "t.w_x")},
    "IL406": {"w.yaml": ONE + "minServerVersion: §'99.0'\n"},
    "IL501": {"w/workflow.yaml": FLOW, "w/activities/a.yaml": "id: a\nname: A\nsteps:\n  - {id: g, type: gate, message: M, options: [{id: x, effect: {transitionTo: a}}]}\n  - §{id: s, name: S, description: D}\n"},
    "IL502": {**activity(""), "w/activities/b.yaml": ACT.replace("id: a", "id: §b")},
    "IL503": gate("options: §[{id: x}, {id: y}]"),
    "IL504": activity(exits("{to: a}", "§{to: __terminal__, isDefault: true}")),
    "IL505": activity("§" + exits("{to: a, condition: {variable: known, value: true}}"), VARS),
    "IL506": activity(exits("{to: a, condition: §{variable: idle, value: true}}", "{to: a, isDefault: true}"), VARS),
    "IL507": {"w.json": '{"id": "t.w", "name": "W", "version": "1.0.0", "variables": [{"name": "known", "defaultValue": 1}], "steps": [{"id": "ask", "title": "A", "prompt": "P", "runCondition": §{"var": "knwon"}}]}'},
    "IL508": activity("checkpoints:\n  - {id: §g, name: G, message: M, options: [{id: x, effect: {transitionTo: a}}]}\n"),
    "IL509": step("prompt: §" + "x" * 8193),
    "IL510": step("prompt: §'Do {{a + 1}}.'"),
    "IL513": {"w.json": '{"id": "t.w", "name": "W", "version": "1.0.0", "steps": [{"id": "ask", "title": "A", "prompt": §"Do {{it.all}}."}]}'},
    "IL514": {"w.yaml": HEAD + "$lenient: true\nvariables: [{name: v, type: boolean, defaultValue: §x}]\nsteps:\n  - {id: ask, title: A, prompt: Judge v.}\n"},
    "IL516": {"w.json": '{"id": "t.w", "name": "W", "version": "1.0.0", "variables": [{"name": "risky", "type": "boolean"}], "steps": [{"id": "ask", "title": "A", "prompt": §"Judge it. Set risky."}]}'},
    "IL517": {"w/workflow.yaml": FLOW, "w/activities/a.yaml": ACT.replace("Do it.", "D, checkpoint: g, sets: [v]") + "checkpoints:\n  - {id: §g, name: G, message: 'M {{v}}', options: [{id: x, effect: {transitionTo: a}}]}\n"},
    "IL518": {**activity(""), "interlock.yaml": "places: {§w/a/g: end}\n"},
    "IL519": step("prompt: P, sets: §[checks]"),
    "IL520": step("prompt: P, checks: [{id: tests, run: §'pytest \"'}]"),
    "IL521": step("prompt: P, checks: [{id: tests, run: §'pytest | tail'}]"),
    "IL522": {"w.yaml": HEAD + "steps:\n  - {id: ask, title: A, prompt: §'Do {{checks.tests}}.'}\n"},
    "IL523": {"w.yaml": HEAD + "steps:\n  - {id: ask, title: A, prompt: §'Do {{artifacts.report.verdict}}.'}\n"},
    "IL511": step("prompt: P, output: {kind: k, schema: {required: [a]}, example: §{b: 1}}"),
}  # fmt: skip
