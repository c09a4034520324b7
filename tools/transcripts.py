"""Record what the stdio server says on every surface, and compare two recordings.

Scripted agents run every bundled workflow and every workflow of the corpus against a real server process.
They read ids and codes only, never sentences, so the same script serves versions that differ in wording.

    python tools/transcripts.py record OUT.json --python /path/to/python
    python tools/transcripts.py compare BEFORE.json AFTER.json
"""

from __future__ import annotations

import argparse
import difflib
import itertools
import json
import os
import re
import shutil
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import Any, TypeAlias

import msgspec
from msgspec import Struct

Json: TypeAlias = Any
Fields: TypeAlias = dict[str, Json]

CORPUS = Path(__file__).resolve().parents[1].parent / "shared" / "corpus"
MOUNTS = {"activities": "", "steps": "steps=", "steps-v1": "steps-v1="}
BUNDLED = "bundled"

WORKERS = 2
SECONDS_PER_SERVER = 240
MOST_STEPS = 200
MOST_ATTEMPTS = 40
MOST_BLOCKS = 5
MOST_SAMPLES = 3
TERMINAL = "__terminal__"

QUICK = ("--min-response-seconds", "0")
VARIANTS: Sequence[tuple[str, str, Sequence[str]]] = (
    ("execution", "guided", ()),
    ("execution", "never-stop", ("--mode", "never-stop")),
    ("session", "strict", QUICK),
    ("gated", "strict", QUICK),
    ("navigation", "strict", ()),
    ("lookup", "plain", ()),
)
BUNDLED_VARIANTS: Sequence[tuple[str, str, Sequence[str]]] = (
    ("execution", "stop", ("--mode", "stop")),
    ("execution", "user", ("--decisions", "user")),
    ("session", "user", (*QUICK, "--decisions", "user")),
    ("session", "patient", ()),
    ("session", "advisory", (*QUICK, "--enforcement", "advisory")),
    ("gated", "user", (*QUICK, "--decisions", "user")),
    ("gated", "patient", ()),
    ("gated", "advisory", (*QUICK, "--enforcement", "advisory")),
    ("navigation", "user", ("--decisions", "user")),
)

# Long and varied enough for the validation criteria of every corpus workflow.
NOTES = "\n".join(
    (
        "Did it because of the requirements; tests, edge cases and unit test coverage: describe, pattern,",
        "optimization. test of POST /auth/login and POST /login: jwt Authorization 401, email password,",
        "valid credentials, protected route, invalid tokens.",
        f"# Impact\n{'x' * 300}\n# Timeline\n# Factors\n# Actions",
    )
)

# What neither the bundled workflows nor the corpus hold: timers, triggers, capabilities, a broken file.
# JSON is YAML, so one notation serves both kinds of file.
CRAFTED: Mapping[str, Json] = {
    "crafted/workflow.yaml": {
        "id": "crafted",
        "version": "1.0.0",
        "title": "Crafted",
        "description": "Every kind of gate.",
        "rules": ["Be brief."],
        "variables": [
            {"name": "parts", "type": "array"},
            {"name": "risky", "type": "boolean", "defaultValue": True},
            {"name": "verdict", "type": "string"},
            {"name": "size", "type": "string"},
            {"name": "short_mode", "type": "boolean"},
        ],
        "modes": [
            {"id": "short", "name": "Short", "activationVariable": "short_mode", "skipActivities": ["build"]}
        ],
        "initialActivity": "gather",
    },
    "crafted/activities/00-gather.yaml": {
        "id": "gather",
        "version": "1.0.0",
        "name": "Gather",
        "steps": [
            {"id": "look", "name": "Look", "description": "Look at it.", "skill": "looking"},
            {"id": "weigh", "name": "Weigh", "description": "Weigh it.", "checkpoint": "scope"},
            {"id": "warn", "name": "Warn", "description": "Warn of it.", "checkpoint": "danger"},
        ],
        "checkpoints": [
            {
                "id": "scope",
                "name": "Scope",
                "message": "Is {{verdict}} right?",
                "options": [
                    {"id": "yes", "label": "Yes", "effect": {"setVariable": {"verdict": "agreed"}}},
                    {"id": "skip", "label": "Skip", "effect": {"transitionTo": "finish"}},
                ],
            },
            {
                "id": "danger",
                "name": "Danger",
                "message": "Is it worth it?",
                "condition": {"type": "simple", "variable": "risky", "operator": "==", "value": True},
                "options": [{"id": "go", "label": "Go"}],
            },
        ],
        "transitions": [
            {"to": "build", "isDefault": True},
            {
                "to": "finish",
                "condition": {"type": "simple", "variable": "size", "operator": "==", "value": "none"},
            },
        ],
    },
    "crafted/activities/01-build.yaml": {
        "id": "build",
        "version": "1.0.0",
        "name": "Build",
        "loops": [
            {
                "id": "each",
                "name": "Each part",
                "type": "forEach",
                "variable": "part",
                "over": "parts",
                "steps": [
                    {"id": "make", "name": "Make", "description": "Make {{part}}."},
                    {"id": "check", "name": "Check", "description": "Check {{part}}.", "checkpoint": "fit"},
                ],
            }
        ],
        "checkpoints": [
            {
                "id": "fit",
                "name": "Fit",
                "message": "Does {{part}} fit?",
                "blocking": False,
                "defaultOption": "fits",
                "autoAdvanceMs": 600000,
                "options": [{"id": "fits", "label": "Fits"}, {"id": "bad", "label": "Bad"}],
            }
        ],
        "triggers": [{"workflow": "crafted-steps", "passContext": ["parts"]}],
        "transitions": [{"to": "finish", "isDefault": True}],
    },
    "crafted/activities/02-finish.yaml": {
        "id": "finish",
        "version": "1.0.0",
        "name": "Finish",
        "steps": [{"id": "close", "name": "Close", "description": "Close it."}],
    },
    "crafted/skills/00-looking.yaml": {"id": "looking", "version": "1.0.0", "capability": "Look"},
    "crafted-steps.json": {
        "id": "crafted-steps",
        "name": "Crafted steps",
        "description": "Every kind of demand.",
        "version": "1.0.0",
        "capabilities": {"web_browsing": "required", "delegation": "preferred"},
        "steps": [
            {
                "id": "words",
                "title": "Words",
                "prompt": "Find words.",
                "validationCriteria": [
                    {"type": "contains", "value": "pattern", "message": "Name the pattern."},
                    {"type": "length", "min": 5, "max": 5000, "message": "Be brief."},
                ],
            },
            {"id": "sure", "title": "Sure", "prompt": "Be sure.", "requireConfirmation": True},
            {
                "id": "times",
                "type": "loop",
                "title": "Times",
                "loop": {"type": "for", "count": "rounds", "maxIterations": 3},
                "body": [{"id": "round", "title": "Round", "prompt": "Go round."}],
            },
        ],
    },
    "broken.json": {"id": "broken", "name": "Broken", "steps": 1},
}

# Keys of sentences. Their wording may change; a value without a space is a code or an id and may not.
MESSAGE_FIELDS = frozenset(
    {
        "description",
        "details",
        "discovery",
        "err",
        "error",
        "fix",
        "guidance",
        "instructions",
        "issues",
        "label",
        "loop_items",
        "message",
        "next",
        "next_action",
        "policy",
        "problem",
        "prompt",
        "reason",
        "reasons",
        "snippet",
        "suggestedFix",
        "suggestion",
        "suggestions",
        "summary",
        "text",
        "title",
        "usage",
        "vw",
        "warning",
        "warnings",
    }
)
CLAIM = re.compile(r"([\w-]+) == (true|false|\"[^\"]*\"|-?\d+)")
VOLATILE_FIELDS = frozenset({"completed_at", "ms", "timestamp", "ts", "uptime_seconds"})
MASK = "<…>"
MASKS = (
    (re.compile(r"\b(st|ack|chk|sst|ses|trc)\.v1\.[\w-]{8,}"), rf"\1.v1.{MASK}"),
    (re.compile(r"\bv1\.gzB64\.[\w+/=-]{8,}"), f"v1.gzB64.{MASK}"),
    (re.compile(r"\b(sess|run)_[a-z2-7]{16,26}\b"), rf"\1_{MASK}"),
    (re.compile(r"\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:?\d\d)?"), "<time>"),
    (re.compile(r"\b\d+(\.\d+)?( ?seconds?|s|ms)\b"), "<duration>"),
)


class Exchange(Struct, omit_defaults=True):
    """One masked request with its response; `identical` says whether a repeated call gave the same result."""

    request: Json
    response: Json
    identical: bool | None = None


Recording: TypeAlias = dict[str, list[Exchange]]


class Answer(Struct, frozen=True):
    """One response as an agent sees it."""

    fields: Fields
    meta: Fields
    text: str
    is_error: bool

    @property
    def code(self) -> str:
        error = self.fields.get("error")
        return str(error.get("code", "") if isinstance(error, dict) else self.fields.get("code", ""))


class ServerGone(Exception):
    """The process ended before it answered."""


class Server:
    """One stdio server on an empty data directory, ended after a time limit."""

    def __init__(self, python: str, home: Path, arguments: Sequence[str]) -> None:
        data = home / "data"
        command = [python, "-m", "interlock", "mcp", "--data-dir", str(data), *arguments]
        kept = {name: value for name, value in os.environ.items() if not _is_foreign(name)}
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=home, env={**kept, "HOME": str(home)}
        )
        self.numbers = itertools.count(1)
        self.timer = threading.Timer(SECONDS_PER_SERVER, self.process.kill)
        self.timer.start()

    def __enter__(self) -> Server:
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()
        self.timer.cancel()

    def send(self, line: bytes) -> bytes:
        """Write one line and read one."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        try:
            self.process.stdin.write(line + b"\n")
            self.process.stdin.flush()
        except OSError as error:
            raise ServerGone from error
        answer = self.process.stdout.readline()
        if not answer.endswith(b"\n"):
            raise ServerGone
        return answer


def _is_foreign(name: str) -> bool:
    return name.startswith(("INTERLOCK_", "PYTHON", "XDG_"))


class Chat:
    """Calls of one case on one server, recorded as they happen."""

    def __init__(self, server: Server, surface: str, paths: Mapping[str, str]) -> None:
        self.server = server
        self.surface = surface
        self.paths = paths
        self.exchanges: list[Exchange] = []
        self.last: tuple[str, Fields, Json] = ("", {}, None)

    def initialize(self, version: str | None = None) -> Answer:
        """Send the handshake, with the version of the surface unless another is given."""
        wanted = version or ("2024-11-05" if self.surface == "lookup" else "2025-11-25")
        client = {"name": "transcripts", "version": "1"}
        return self.request(
            "initialize", {"protocolVersion": wanted, "capabilities": {}, "clientInfo": client}
        )

    def call(self, tool: str, **arguments: Json) -> Answer:
        """Call a tool; an argument that is None is left out."""
        given = {name: value for name, value in arguments.items() if value is not None}
        return self.request("tools/call", {"name": tool, "arguments": given})

    def again(self) -> Answer:
        """Repeat the last request and record whether the result is the same, tokens included."""
        method, params, before = self.last
        answer = self.request(method, params)
        self.exchanges[-1].identical = self.last[2] == before
        return answer

    def request(self, method: str, params: Fields) -> Answer:
        """Send a request and record it with its response."""
        number = next(self.server.numbers)
        message = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
        response = self.line(msgspec.json.encode(message), {"method": method, "params": params})
        result = response.get("result", response.get("error"))
        self.last = (method, params, result)
        return _answer(response)

    def line(self, line: bytes, shown: Json) -> Fields:
        """Send a line that need not be a request, and record what comes back."""
        response: Fields = msgspec.json.decode(self.server.send(line))
        recorded = {name: value for name, value in response.items() if name not in ("jsonrpc", "id")}
        self.exchanges.append(Exchange(self._masked(shown), self._masked(_unfolded(recorded))))
        return response

    def _masked(self, value: Json) -> Json:
        match value:
            case str():
                return self._masked_text(value)
            case list():
                return [self._masked(item) for item in value]
            case dict():
                return {
                    name: MASK if name in VOLATILE_FIELDS else self._masked(item)
                    for name, item in value.items()
                }
        return value

    def _masked_text(self, text: str) -> str:
        for path, name in self.paths.items():
            text = text.replace(path, name)
        for pattern, mask in MASKS:
            text = pattern.sub(mask, text)
        return text


def _answer(response: Fields) -> Answer:
    result = response.get("result") or {}
    text = (result.get("content") or [{}])[0].get("text", "")
    fields = result.get("structuredContent")
    if fields is None:
        fields = _decoded(text)
    if not isinstance(fields, dict):
        fields = {"items": fields} if fields else {}
    failed = "error" in response or bool(result.get("isError")) or fields.get("success") is False
    return Answer(fields or response.get("error", {}), result.get("_meta", {}), text, failed)


def _unfolded(response: Fields) -> Fields:
    """Replace JSON in text by its value, and by a remark where it only repeats structuredContent."""
    result = response.get("result")
    if not isinstance(result, dict) or "content" not in result:
        return response
    structured = result.get("structuredContent")
    content = []
    for item in result["content"]:
        value = _decoded(item.get("text", ""))
        shown = "as structuredContent" if value == structured else value
        content.append(item if value is None else {"type": item["type"], "json": shown})
    return {**response, "result": {**result, "content": content}}


def _decoded(text: str) -> Json:
    """Return the object or list that a text is, or None."""
    if text[:1] not in ("{", "["):
        return None
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError:
        return None


class Definition(Struct, frozen=True):
    """A workflow as the navigation surface shows it, for agents that need its ids."""

    id: str
    fields: Fields
    resources: Sequence[str]
    templates: Sequence[str]
    skills: Sequence[str]

    @property
    def activities(self) -> list[Fields]:
        listed: list[Fields] = self.fields.get("activities", [])
        return listed

    @property
    def initial(self) -> str:
        return str(self.fields.get("initialActivity") or self.activities[0]["id"])

    def activity(self, activity_id: str) -> Fields:
        return next((activity for activity in self.activities if activity["id"] == activity_id), {})

    def steps(self, activity_id: str) -> list[Fields]:
        """List the steps of an activity, those in loops included."""
        return [item for item in _objects(self.activity(activity_id)) if "id" in item and _is_step(item)]

    def exits(self, activity_id: str) -> list[str]:
        """List where an activity may lead, in the order of the file."""
        activity = self.activity(activity_id)
        targets = [transition["to"] for transition in activity.get("transitions", [])]
        branches = [
            branch for decision in activity.get("decisions", []) for branch in decision.get("branches", [])
        ]
        targets += [branch["transitionTo"] for branch in branches if branch.get("transitionTo")]
        return list(dict.fromkeys(targets)) or [TERMINAL]

    def checkpoint(self, activity_id: str, checkpoint_id: str) -> Fields:
        listed = self.activity(activity_id).get("checkpoints", [])
        return next((checkpoint for checkpoint in listed if checkpoint["id"] == checkpoint_id), {})

    def claims(self, activity_id: str | None = None) -> list[Fields]:
        """List the values that conditions compare variables with."""
        source = self.fields if activity_id is None else self.activity(activity_id)
        texts = [str(value) for item in _objects(source) for key, value in item.items() if "ondition" in key]
        comparisons = itertools.chain.from_iterable(CLAIM.findall(text) for text in texts)
        return [{name: json.loads(value)} for name, value in comparisons]


def _objects(value: Json) -> Iterator[Fields]:
    if isinstance(value, dict):
        yield value
        value = list(value.values())
    if isinstance(value, list):
        for item in value:
            yield from _objects(item)


def _is_step(item: Fields) -> bool:
    return "name" in item and not {"options", "steps", "message"} & item.keys()


class Folder(Struct, frozen=True):
    """One source of workflows: how it is mounted, and what it adds."""

    name: str
    arguments: Sequence[str]
    paths: Mapping[str, str]
    definitions: Sequence[Definition] = ()


def folders(python: str, corpus: Path, crafted: Path) -> list[Folder]:
    """Read every folder once, so that all agents know the ids in it."""
    bundled, known = surveyed(python, Folder(BUNDLED, (), {}), {})
    mounted = [Folder("crafted", ("--workflows", str(crafted)), {str(crafted): "<crafted>"})]
    if corpus.is_dir():
        paths = {str(corpus): "<corpus>"}
        mounted += [
            Folder(name, ("--workflows", f"{mount}{corpus / name}"), paths) for name, mount in MOUNTS.items()
        ]
    else:
        print(f"Skipping the corpus: there is none at {corpus}.", file=sys.stderr)
    with ThreadPoolExecutor(WORKERS) as pool:
        surveys = pool.map(lambda folder: surveyed(python, folder, known)[0], mounted)
        return [bundled, *surveys]


def surveyed(python: str, folder: Folder, known: Mapping[str, Json]) -> tuple[Folder, dict[str, Json]]:
    """Fill in the definitions of the workflows that are not known from elsewhere."""
    arguments = ("--surface", "navigation", *folder.arguments)
    with TemporaryDirectory() as home, Server(python, Path(home), arguments) as server:
        chat = Chat(server, "navigation", {})
        chat.initialize()
        listed = {entry["id"]: entry for entry in chat.call("list_workflows").fields["workflows"]}
        added = [name for name, entry in sorted(listed.items()) if known.get(name) != entry]
        definitions = [defined(chat, name) for name in added]
    return msgspec.structs.replace(folder, definitions=definitions), listed


def defined(chat: Chat, workflow_id: str) -> Definition:
    """Read one workflow through the navigation surface."""
    resources = chat.call("list_workflow_resources", workflow_id=workflow_id).fields.get("resources", [])
    templates = chat.call("list_templates", workflow_id=workflow_id).fields.get("templates", [])
    skills = chat.call("list_skills", workflow_id=workflow_id).fields
    return Definition(
        workflow_id,
        chat.call("get_workflow", workflow_id=workflow_id).fields,
        [str(resource["index"]) for resource in resources],
        [str(template["index"]) for template in templates],
        [*skills.get("workflow_specific", []), *skills.get("universal", [])],
    )


class Turns:
    """Count choices and pick the least used, so that no loop repeats without end."""

    def __init__(self) -> None:
        self.taken: Counter[str] = Counter()

    def pick(self, among: Sequence[str], where: str) -> str:
        chosen = min(among, key=lambda choice: self.taken[f"{where}:{choice}"])
        self.taken[f"{where}:{chosen}"] += 1
        return chosen

    def count(self, where: str) -> int:
        self.taken[where] += 1
        return self.taken[where]

    def once(self, where: str) -> bool:
        return self.count(where) == 1


def damaged(token: str) -> str:
    """Change one character in the middle of a token."""
    at = len(token) - 12
    return f"{token[:at]}{'B' if token[at] != 'B' else 'C'}{token[at + 1 :]}"


def weakened(artifact: Fields) -> Fields:
    """Return an artifact that does not satisfy what the given one satisfies."""
    if artifact["kind"] != "wr.capability_observation":
        return {"kind": artifact["kind"], "surplus": 1}
    failure = {"kind": "attempted_use", "attemptContext": "workflow_step", "result": "failure"}
    return {**artifact, "status": "unavailable", "provenance": {**failure, "failureCode": "tool_missing"}}


def value_for(name: str, attempt: int) -> Json:
    """Guess a value for a variable that an answer asks for, another one at each attempt."""
    guesses: list[Json] = ["yes", ["one", "two"], 2]
    first = 1 if re.search(r"s$|list|queue|items", name) else 0
    return guesses[(first + attempt - 1) % len(guesses)]


class ExecutionAgent:
    """Does what is pending, sends the examples it is offered, and takes the first option."""

    def __init__(self, chat: Chat, definition: Definition) -> None:
        self.chat = chat
        self.definition = definition
        self.turns = Turns()
        self.held: list[Fields] = []

    @staticmethod
    def open(chat: Chat) -> None:
        """Make the calls that need no run, wrong ones included."""
        chat.call("list_workflows")
        chat.call("start_workflow", workflowId="no.such.workflow")
        chat.call("inspect_workflow", workflowId="no.such.workflow", mode="metadata")
        chat.call("inspect_workflow", mode="everything")
        chat.call("start_workflow", workflowId=7, surplus=True)
        chat.call("continue_workflow", stateToken="no token")
        chat.call("continue_workflow", stateToken="st.v2.AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA")
        chat.call("no_such_tool")
        chat.call("resume_session", query="nothing like this was ever done")
        session = chat.call("start_session", title="Notes before any workflow").fields
        token = session.get("sessionToken")
        chat.call("checkpoint_workflow", sessionToken=token, output={"notesMarkdown": "First thoughts."})
        chat.again()
        chat.call("checkpoint_workflow", output={"notesMarkdown": "For nobody."})
        chat.call("checkpoint_workflow", sessionToken=token, output={})
        chat.call("resume_session", query="first thoughts")

    def walk(self) -> None:
        """Run the workflow to its end, with detours and errors."""
        workflow_id = self.definition.id
        self.chat.call("inspect_workflow", workflowId=workflow_id)
        self.chat.call("inspect_workflow", workflowId=workflow_id, mode="metadata")
        first = self.chat.call("start_workflow", workflowId=workflow_id, context={"goal": "walk"}).fields
        if "stateToken" not in first:
            return
        answer = self._explore(first)
        blocks = 0
        for _ in range(MOST_STEPS):
            if not answer.get("ackToken") or answer.get("isComplete") or blocks > MOST_BLOCKS:
                break
            answer = self.step(answer)
            blocks = blocks + 1 if answer.get("kind") == "blocked" else 0
        self._leave(first, answer)

    def step(self, answer: Fields) -> Fields:
        """Answer what is pending, with what the blockers of the last attempt ask for."""
        step_id = answer["pending"]["stepId"]
        artifacts, context = self._offered(answer)
        if self.turns.count(step_id) > 3 and (claims := self.definition.claims()):
            context |= claims[self.turns.count(f"claim {step_id}") % len(claims)]
        output = {"notesMarkdown": NOTES, **({"artifacts": artifacts} if artifacts else {})}
        tokens = {name: answer[name] for name in ("stateToken", "ackToken")}
        return self.chat.call("continue_workflow", **tokens, output=output, context=context or None).fields

    def _offered(self, answer: Fields) -> tuple[list[Fields], Fields]:
        context: Fields = {}
        blockers = answer.get("blockers", [])
        self.held = self.held if blockers else []
        artifacts = list(self.held)
        for blocker in blockers:
            example, key = blocker.get("example"), blocker.get("pointer", {}).get("key")
            if key is not None:
                context[key] = value_for(key, self.turns.count(f"value {key}"))
            elif isinstance(example, dict) and "kind" in example:
                sent = weakened(example) if self.turns.once(f"weak {example['kind']}") else example
                artifacts.append(sent)
                self.held.append(example)
        if decision := answer["pending"].get("decision"):
            options = [option["id"] for option in decision["options"]]
            chosen = self.turns.pick(options, decision["checkpointId"])
            if self.turns.once("decisions"):
                chosen = "no-such-option"
            answered = {"checkpointId": decision["checkpointId"], "optionId": chosen}
            artifacts = [{"kind": "wr.decision", **answered}]
        return artifacts, context

    def _explore(self, first: Fields) -> Fields:
        """Advance one step with notes, errors, a replay, a rehydrate and a fork."""
        state, ack, note = first["stateToken"], first.get("ackToken"), first.get("checkpointToken")
        self.chat.call("continue_workflow", stateToken=state)
        notes = {"notesMarkdown": "Half of it is done."}
        self.chat.call("checkpoint_workflow", stateToken=state, checkpointToken=note, output=notes)
        self.chat.again()
        self.chat.call("continue_workflow", stateToken=damaged(state))
        self.chat.call("continue_workflow", stateToken=state, ackToken=damaged(ack or state))
        self.chat.call("continue_workflow", stateToken=state, ackToken=note)
        self.chat.call("continue_workflow", stateToken=state, ackToken=ack, output={"artifacts": [{}]})
        self.chat.call("continue_workflow", stateToken=state, ackToken=ack)
        advanced = self.step(first)
        self.chat.again()
        if "stateToken" not in advanced:
            return advanced
        self.chat.call("continue_workflow", stateToken=advanced["stateToken"], ackToken=ack)
        earlier = self.chat.call("continue_workflow", stateToken=state).fields
        if "ackToken" in earlier:
            self.step(earlier)
        return self.chat.call("continue_workflow", stateToken=advanced["stateToken"]).fields

    def _leave(self, first: Fields, last: Fields) -> None:
        session = first.get("session", {})
        self.chat.call("resume_session", resumeRef=session.get("runId"))
        self.chat.call("resume_session", resumeRef=str(session.get("sessionId"))[:24])
        self.chat.call("continue_workflow", stateToken=last.get("stateToken", first["stateToken"]))
        self.chat.call(
            "continue_workflow", stateToken=last.get("stateToken", ""), ackToken=first.get("ackToken")
        )


class ActivityAgent:
    """What the agents of the session and gated surfaces share: enter, read, answer, leave."""

    resource_parameter: str

    def __init__(self, chat: Chat, definition: Definition) -> None:
        self.chat = chat
        self.definition = definition
        self.turns = Turns()
        self.token = ""
        self.manifest: list[Fields] = []
        self.refused = 0

    @staticmethod
    def open(chat: Chat) -> None:
        """Make the calls that need no run, wrong ones included."""
        chat.call("discover")
        chat.call("list_workflows")
        chat.call("health_check")
        chat.call("start_session", agent_id="agent", workflow_id="no-such-workflow")
        chat.call("start_session", agent_id=7, workflow_id=7)
        chat.call("start_session", agent_id="agent", workflow_id="meta", session_token="no token")
        chat.call("next_activity", session_token="no token", activity_id="any")
        chat.call("next_activity", session_token="ses.v1.AAAA", activity_id="any")
        chat.call("next_activity", activity_id="any")
        chat.call("no_such_tool")

    def say(self, tool: str, **arguments: Json) -> Answer:
        """Call with the newest token."""
        answer = self.chat.call(tool, session_token=self.token, **arguments)
        self.token = answer.meta.get("session_token") or self.token
        return answer

    def walk(self) -> None:
        """Run the workflow to its end, with detours and errors."""
        started = self.chat.call("start_session", agent_id="agent", workflow_id=self.definition.id)
        self.token = first_token = started.fields.get("session_token", "")
        self._read_workflow()
        activity_id = self.definition.initial
        entered = self.say("next_activity", activity_id=activity_id)
        self.chat.again()
        self.chat.call("next_activity", session_token=first_token, activity_id=TERMINAL)
        for visit in range(MOST_STEPS):
            if entered.is_error or entered.fields.get("status") == "completed":
                break
            self.read(activity_id)
            if visit == 0:
                self.err(activity_id)
            over = len(self.chat.exchanges) > MOST_STEPS
            activity_id, entered = self.leave(activity_id, [TERMINAL] if over else None)
        self._end(entered)

    def read(self, activity_id: str) -> None:
        """Read what an activity needs, the first time it is entered."""
        if not self.turns.once(f"read {activity_id}"):
            return
        steps = self.definition.steps(activity_id)
        skilled = [step["id"] for step in steps if step.get("skill")][:MOST_SAMPLES]
        plain = [step["id"] for step in steps if not step.get("skill")][:1]
        for step_id in [*skilled, *plain]:
            self.say("get_skill", step_id=step_id)

    def err(self, activity_id: str) -> None:
        """Make the mistakes that are possible inside an activity."""
        self.say("get_skill", step_id="no-such-step")
        self.say("next_activity", activity_id=TERMINAL, step_manifest=[{"step_id": "no-such-step"}])
        self.say("next_activity", activity_id=TERMINAL, step_manifest="all of it")
        self.say("next_activity", activity_id="no-such-activity", variables={"goal": "walk", "none": None})
        self.chat.call("next_activity", session_token=damaged(self.token), activity_id=TERMINAL)

    def answer(self, activity_id: str, checkpoint_id: str) -> Answer:
        """Answer a checkpoint with the option that was taken least often."""
        raise NotImplementedError

    def leave(self, activity_id: str, exits: Sequence[str] | None) -> tuple[str, Answer]:
        """Move on, and supply what each refusal asks for."""
        target = self.turns.pick(exits or self.definition.exits(activity_id), activity_id)
        steps = self.definition.steps(activity_id) if self.turns.count(activity_id) % 2 else []
        self.manifest = [{"step_id": step["id"], "output": NOTES} for step in steps]
        done = [{"activity_id": activity_id, "outcome": "done"}]
        for _ in range(MOST_ATTEMPTS):
            claimed = self.manifest or None
            moved = self.say(
                "next_activity", activity_id=target, step_manifest=claimed, activity_manifest=done
            )
            if not moved.is_error or self.refused > 1:
                break
            target = self._resolve(moved, activity_id) or target
        return target, moved

    def _resolve(self, refused: Answer, activity_id: str) -> str | None:
        """Do what a refusal asks for, and return the activity that an answer leads to."""
        fields = refused.fields
        match refused.code:
            case "GATE_UNANSWERED":
                answered = self.answer(activity_id, fields.get("checkpoint") or fields["pending"][0])
                self.refused = self.refused + 1 if answered.is_error else 0
                return (answered.fields.get("effect") or {}).get("transitionTo")
            case "INPUT_REQUIRED":
                attempts = {name: self.turns.count(f"value {name}") for name in fields["variables"]}
                values = {name: value_for(name, attempt) for name, attempt in attempts.items()}
                self.say("next_activity", activity_id="no-such-activity", variables=values)
            case "DECISION_PENDING":
                self.refused += 1
            case "OUTPUT_REQUIRED":
                self._supply(fields["step"], fields["example"])
            case _:
                self.manifest = []
        return None

    def _supply(self, step_id: str, artifact: Fields) -> None:
        """Add an artifact to the claim of a step; one that has it already is of an earlier iteration."""
        claims = [claim for claim in self.manifest if claim["step_id"] == step_id]
        held = claims[-1]["output"] if claims else None
        if isinstance(held, dict) and artifact not in held["artifacts"]:
            held["artifacts"].append(artifact)
        elif isinstance(held, str):
            claims[-1]["output"] = {"artifacts": [artifact]}
        else:
            self.manifest.append({"step_id": step_id, "output": {"artifacts": [artifact]}})

    def _read_workflow(self) -> None:
        self.say("get_workflow")
        self.say("get_workflow", summary=False)
        self.say("get_skills")
        self.say("get_skills", full=True)
        self.say("get_skill", step_id="no-such-step")
        self.say("next_activity", activity_id="no-such-activity")
        for index in [*self.definition.resources[:MOST_SAMPLES], "99"]:
            self.say("get_resource", **{self.resource_parameter: index})

    def _end(self, left: Answer) -> None:
        self.say("next_activity", activity_id=self.definition.initial)
        self.say("get_trace")
        self.say("get_trace", trace_tokens=[left.meta.get("trace_token") or "trc.v1.AAAA"])
        again = {"agent_id": "second", "workflow_id": self.definition.id}
        self.chat.call("start_session", **again, session_token=self.token)
        self.chat.call("start_session", **again, session_token=damaged(self.token))

    def pick_option(self, activity_id: str, checkpoint_id: str, listed: Sequence[Fields] = ()) -> str:
        known = listed or self.definition.checkpoint(activity_id, checkpoint_id).get("options", [])
        options = [option["id"] for option in known] or ["proceed"]
        return self.turns.pick(options, f"{activity_id}:{checkpoint_id}")


WRONG_ANSWERS: Sequence[Fields] = (
    {},
    {"option_id": "no-such-option"},
    {"option_id": "any", "auto_advance": True},
    {"auto_advance": True},
    {"condition_not_met": True},
)


class SessionAgent(ActivityAgent):
    """Orchestrator and worker in one: yields a checkpoint, presents it, answers it, resumes."""

    resource_parameter = "resource_id"

    def read(self, activity_id: str) -> None:
        self.say("get_workflow_status")
        self.say("get_activity")
        if self.turns.once("full"):
            self.say("get_activity", full=True)
        super().read(activity_id)

    def err(self, activity_id: str) -> None:
        super().err(activity_id)
        self.say("yield_checkpoint", checkpoint_id="no-such-checkpoint")
        self.say("resume_checkpoint")
        self.say("present_checkpoint")
        self.say("respond_checkpoint", option_id="proceed")
        child = {"agent_id": "child", "workflow_id": "meta", "parent_session_token": self.token}
        started = self.chat.call("start_session", **child).fields
        self.chat.call("get_workflow_status", session_token=started.get("session_token"))
        self.say("get_workflow_status")

    def answer(self, activity_id: str, checkpoint_id: str) -> Answer:
        asked = {"checkpoint_id": checkpoint_id, "step_manifest": self.manifest or None}
        yielded = self.say("yield_checkpoint", **asked)
        handle = yielded.fields.get("checkpoint_handle")
        if handle is None:
            self.manifest = []
            return yielded
        if self.turns.once("errors while open"):
            self._err_while_open(handle, checkpoint_id)
        self.chat.call("present_checkpoint", checkpoint_handle=handle)
        if self.definition.checkpoint(activity_id, checkpoint_id).get("autoAdvanceMs"):
            self.chat.call("respond_checkpoint", checkpoint_handle=handle, auto_advance=True)
        chosen = self.pick_option(activity_id, checkpoint_id)
        answered = self.chat.call("respond_checkpoint", checkpoint_handle=handle, option_id=chosen)
        self.chat.again()
        if self.turns.once("second answer"):
            other = self.pick_option(activity_id, checkpoint_id)
            self.chat.call("respond_checkpoint", checkpoint_handle=handle, option_id=other)
        self.say("resume_checkpoint")
        if self.turns.once("second yield"):
            self.say("yield_checkpoint", checkpoint_id=checkpoint_id)
        return answered

    def _err_while_open(self, handle: str, checkpoint_id: str) -> None:
        self.say("get_activity")
        self.say("get_workflow_status")
        self.say("resume_checkpoint")
        self.say("next_activity", activity_id=TERMINAL)
        self.say("yield_checkpoint", checkpoint_id=checkpoint_id)
        for given in WRONG_ANSWERS:
            self.chat.call("respond_checkpoint", checkpoint_handle=handle, **given)


class GatedAgent(ActivityAgent):
    """Answers each pending checkpoint, or dismisses it where its condition is false."""

    resource_parameter = "resource_index"

    def err(self, activity_id: str) -> None:
        super().err(activity_id)
        self.say("get_checkpoint", activity_id=activity_id, checkpoint_id="no-such-checkpoint")
        self.say("get_checkpoint", activity_id="no-such-activity", checkpoint_id="any")
        self.say("respond_checkpoint", checkpoint_id="no-such-checkpoint", option_id="proceed")
        self.chat.call("start_session", workflow_id="meta", session_token=self.token)

    def answer(self, activity_id: str, checkpoint_id: str) -> Answer:
        gate = {"checkpoint_id": checkpoint_id}
        shown = self.say("get_checkpoint", activity_id=activity_id, **gate).fields.get("checkpoint") or {}
        if self.turns.once("wrong answers"):
            for given in WRONG_ANSWERS[:-1]:
                self.say("respond_checkpoint", **gate, **given)
        if shown.get("autoAdvanceMs"):
            self.say("respond_checkpoint", **gate, auto_advance=True)
        dismissed = self.say("respond_checkpoint", **gate, condition_not_met=True)
        if not dismissed.is_error:
            return dismissed
        listed = shown.get("options", [])
        chosen = self.pick_option(activity_id, checkpoint_id, listed)
        answered = self.say("respond_checkpoint", **gate, option_id=chosen)
        self.chat.again()
        if self.turns.once("second answer"):
            other = self.pick_option(activity_id, checkpoint_id, listed)
            self.say("respond_checkpoint", **gate, option_id=other)
        return answered


class NavigationAgent:
    """Takes the required actions in turn, with the parameters that they list."""

    parameters: Mapping[str, tuple[str, str]] = {
        "complete_step": ("step_id", "step"),
        "respond_to_checkpoint": ("checkpoint_id", "checkpoint"),
        "transition": ("activity_id", "activity"),
        "advance_loop": ("loop_id", "loop"),
    }

    def __init__(self, chat: Chat, definition: Definition) -> None:
        self.chat = chat
        self.definition = definition
        self.turns = Turns()

    @staticmethod
    def open(chat: Chat) -> None:
        """Make the calls that need no run, wrong ones included."""
        for tool in ("list_workflows", "health_check", "get_skills", "list_skills", "discover_resources"):
            chat.call(tool)
        for entry in chat.call("get_activities").fields.get("activities", [])[:MOST_SAMPLES]:
            chat.call("get_activity", activity_id=entry["id"])
        chat.call("get_activity", activity_id="no-such-activity")
        chat.call("nav_start", workflow_id="no-such-workflow")
        chat.call("nav_start", workflow_id=7, surplus=True)
        chat.call("nav_start")
        for state in ("no state", "v1.gzB64.****", "v1.gzB64.AAAA", "v1.gzB64.H4sIAAAAAAAA"):
            chat.call("nav_situation", state=state)
        chat.call("get_skill", skill_id="no-such-skill")
        chat.call("no_such_tool")

    def act(self, situation: Fields, **arguments: Json) -> Answer:
        """Take an action from a situation."""
        return self.chat.call("nav_action", state=situation["state"], **arguments)

    def walk(self) -> None:
        """Run the workflow to its end, with detours and errors."""
        self._read()
        situation = self.chat.call("nav_start", workflow_id=self.definition.id).fields
        if "state" not in situation:
            return
        self._err(situation)
        for number in range(MOST_STEPS):
            arguments = self._choice(situation) if situation.get("status") != "completed" else None
            if arguments is None or self.turns.taken["refusals"] > 2:
                break
            self._err_before(situation, arguments)
            taken = self.act(situation, **arguments)
            if taken.is_error:
                self.turns.count("refusals")
            elif number == 0:
                self._detour(situation, taken.fields, arguments)
            situation = taken.fields if "state" in taken.fields else situation
        self.chat.call("nav_situation", state=situation["state"])
        self.act(situation, action="transition", activity_id=TERMINAL)

    def _choice(self, situation: Fields) -> Fields | None:
        """Choose a required action, or another open transition when an activity comes again."""
        actions = situation["availableActions"]
        required = actions["required"]
        if not required:
            return self._persuasion(situation)
        if required[0]["action"] != "transition":
            return self._arguments(required[0])
        moves = [*required, *(move for move in actions["optional"] if move["action"] == "transition")]
        chosen = self.turns.pick(
            [move["activity"] for move in moves], situation["position"]["activity"]["id"]
        )
        return self._arguments(next(move for move in moves if move["activity"] == chosen))

    def _arguments(self, offer: Fields) -> Fields:
        """Fill in what an offer asks for, and what would end its loop when it comes too often."""
        name, field = self.parameters[offer["action"]]
        arguments: Fields = {"action": offer["action"], name: offer[field]}
        if "options" in offer:
            arguments["option_id"] = self.turns.pick(offer["options"], f"option {offer[field]}")
        if "loop_items" in offer:
            arguments["loop_items"] = ["one", "two"]
        variables = dict.fromkeys(offer.get("variables", []), 2)
        turn = self.turns.count(f"{offer['action']} {offer[field]}")
        if turn > 3 and (claims := self.definition.claims()):
            variables |= claims[turn % len(claims)]
        output: Fields = {}
        for need in offer.get("needs", []):
            match need["parameter"]:
                case "variables":
                    variables.update(need["example"])
                case "output.artifacts":
                    output.setdefault("artifacts", []).append(need["example"])
                case _:
                    output["notesMarkdown"] = NOTES
        return {**arguments, "variables": variables or None, "output": output or None}

    def _persuasion(self, situation: Fields) -> Fields | None:
        """Open a blocked transition by setting the variables that it waits for."""
        blocked = [offer for offer in situation["availableActions"]["blocked"] if offer.get("variables")]
        if not blocked:
            return None
        claims = self.definition.claims(situation["position"]["activity"]["id"])
        wanted = [claim for claim in claims if claim.keys() & set(blocked[0]["variables"])]
        variables = {name: value for claim in reversed(wanted) for name, value in claim.items()}
        return {"action": "transition", "activity_id": blocked[0]["activity"], "variables": variables}

    def _err(self, situation: Fields) -> None:
        """Make the mistakes that are possible at the start."""
        self.chat.call("nav_situation", state=situation["state"])
        self.chat.call("nav_checkpoint", state=situation["state"])
        self.chat.call("nav_situation", state=damaged(situation["state"]))
        self.chat.call("nav_start", workflow_id="meta", parent_state=situation["state"])
        initial = self.definition.initial
        self.act(situation, action="fly")
        self.act(situation, action="complete_step")
        self.act(situation, action="complete_step", step_id="no-such-step")
        for step in self.definition.steps(initial)[-1:]:
            self.act(situation, action="complete_step", step_id=step["id"])
        for target in (self.definition.exits(initial)[0], "no-such-activity"):
            self.act(situation, action="transition", activity_id=target)
        self.act(
            situation, action="respond_to_checkpoint", checkpoint_id="no-such-checkpoint", option_id="any"
        )
        self.act(situation, action="advance_loop", loop_id="no-such-loop")

    def _err_before(self, situation: Fields, arguments: Fields) -> None:
        """Try what an action does not allow, the first time that one of its kind comes."""
        action = arguments["action"]
        if arguments.get("output") and self.turns.once("bare step"):
            self.act(situation, **{**arguments, "output": None})
        if arguments.get("loop_items") and self.turns.once("bare loop"):
            self.act(situation, **{**arguments, "loop_items": None})
        if action == "transition" and self.turns.once("wrong transition"):
            self.act(situation, action=action, activity_id=situation["position"]["activity"]["id"])
        if action == "respond_to_checkpoint" and self.turns.once("wrong answer"):
            self.chat.call("nav_checkpoint", state=situation["state"])
            self.act(situation, **{**arguments, "option_id": "no-such-option"})
            self.act(situation, action="complete_step", step_id="no-such-step")
            self.act(situation, action="transition", activity_id=TERMINAL)

    def _detour(self, before: Fields, after: Fields, arguments: Fields) -> None:
        """Repeat an action, start a branch with another, and try the action again after it is done."""
        self.chat.again()
        self.act(before, **{**arguments, "variables": {"branch": "other"}})
        self.act(after, **arguments)

    def _read(self) -> None:
        flow = {"workflow_id": self.definition.id}
        read = self.chat.call
        read("get_workflow", **flow)
        for activity in self.definition.activities[:MOST_SAMPLES]:
            self._read_activity(activity)
        read("get_workflow_activity", **flow, activity_id="no-such-activity")
        read("list_skills", **flow)
        for skill in self.definition.skills[:MOST_SAMPLES]:
            read("get_skill", skill_id=skill, **flow)
        read("list_workflow_resources", **flow)
        for index in [*self.definition.resources[:MOST_SAMPLES], "99"]:
            read("get_resource", **flow, index=index)
        read("list_templates", **flow)
        for index in [*self.definition.templates[:MOST_SAMPLES], "99"]:
            read("get_template", **flow, index=index)

    def _read_activity(self, activity: Fields) -> None:
        flow, activity_id = self.definition.id, activity["id"]
        self.chat.call("get_workflow_activity", workflow_id=flow, activity_id=activity_id)
        for checkpoint in [*activity.get("checkpoints", [])[:1], {"id": "no-such-checkpoint"}]:
            named = {"activity_id": activity_id, "checkpoint_id": checkpoint["id"]}
            self.chat.call("get_checkpoint", workflow_id=flow, **named)
        for target in (self.definition.exits(activity_id)[0], activity_id, "no-such-activity"):
            self.chat.call(
                "validate_transition", workflow_id=flow, from_activity=activity_id, to_activity=target
            )


class LookupAgent:
    """Asks for every step in turn and checks an output of each."""

    def __init__(self, chat: Chat, definition: Definition) -> None:
        self.chat = chat
        self.definition = definition

    @staticmethod
    def open(chat: Chat) -> None:
        """Make the calls that need no run, wrong ones included."""
        chat.request("workflow_list", {})
        chat.call("workflow_list")
        chat.request("workflow_get", {"id": "no-such-workflow"})
        chat.call("workflow_get", id="x")
        chat.call("workflow_get", id="Not An Id")
        chat.call("workflow_get", id="broken")
        chat.call("workflow_get")
        chat.call("workflow_get", id="wr-small-task", surplus=1)
        chat.call("workflow_next", workflowId="no-such-workflow", completedSteps=[])
        chat.call("workflow_next", workflowId="no-such-workflow", completedSteps="none")
        chat.call("workflow_validate", workflowId="no-such-workflow", stepId="any", output="x")
        chat.call("workflow_validate_json", workflowJson='{"id": "broken", "steps": 1}')
        chat.call("workflow_validate_json", workflowJson="not JSON")
        chat.call("no_such_tool")

    def walk(self) -> None:
        """Run the workflow to its end, with detours and errors."""
        flow = self.definition.id
        whole = self.chat.call("workflow_get", id=flow).fields
        self.chat.request("workflow_get", {"id": whole.get("id", flow), "mode": "metadata"})
        self.chat.request("workflow_get", {"id": whole.get("id", flow), "mode": "preview"})
        if whole.get("steps"):
            text = msgspec.json.encode(whole).decode()
            self.chat.call("workflow_validate_json", workflowJson=text)
        done = self._steps(flow)
        self.chat.call("workflow_next", workflowId=flow, completedSteps=["no-such-step"])
        self.chat.call("workflow_next", workflowId=flow, completedSteps=done[1:2])
        self.chat.call("workflow_next", workflowId=flow, completedSteps=[], currentStep="no-such-step")
        self.chat.call("workflow_validate", workflowId=flow, stepId="no-such-step", output="x")
        self.chat.call("workflow_validate", workflowId=flow, stepId=(done or ["none"])[0], output="")

    def _steps(self, flow: str) -> list[str]:
        done: list[str] = []
        context = {name: value for claim in self.definition.claims() for name, value in claim.items()}
        for _ in range(MOST_STEPS // 3):
            answer = self.chat.call(
                "workflow_next", workflowId=flow, completedSteps=done, context=context or None
            ).fields
            step_id = (answer.get("step") or {}).get("id")
            if step_id is None or step_id in done:
                break
            done.append(step_id)
            for output in ("x", NOTES):
                self.chat.call("workflow_validate", workflowId=flow, stepId=step_id, output=output)
        return done


AGENTS: Mapping[str, Callable[[Chat, Definition], Any]] = {
    "execution": ExecutionAgent,
    "session": SessionAgent,
    "gated": GatedAgent,
    "navigation": NavigationAgent,
    "lookup": LookupAgent,
}


class Job(Struct, frozen=True):
    """One server process: a surface with some flags, on one folder."""

    surface: str
    mode: str
    flags: Sequence[str]
    folder: Folder

    @property
    def name(self) -> str:
        return f"{self.surface}/{self.mode}/{self.folder.name}"


def jobs(sources: Sequence[Folder]) -> list[Job]:
    """List every server process of a recording."""
    listed = [Job(*variant, folder) for folder in sources for variant in VARIANTS]
    return listed + [Job(*variant, sources[0]) for variant in BUNDLED_VARIANTS]


def record(python: str, corpus: Path) -> Recording:
    """Run every job and collect its cases, sorted by name."""
    with TemporaryDirectory() as crafted, ThreadPoolExecutor(WORKERS) as pool:
        write_crafted(Path(crafted))
        sources = folders(python, corpus, Path(crafted))
        crossing = pool.submit(crossed, python, sources[0])
        parts = [*pool.map(lambda job: recorded(python, job), jobs(sources)), crossing.result()]
    return dict(sorted(itertools.chain.from_iterable(part.items() for part in parts)))


def write_crafted(folder: Path) -> None:
    """Write the crafted workflow files into a folder."""
    for name, content in CRAFTED.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(msgspec.json.encode(content))


def recorded(python: str, job: Job) -> Recording:
    """Drive one server through all workflows of its folder."""
    cases: Recording = {}
    arguments = ("--surface", job.surface, *job.flags, *job.folder.arguments)
    with TemporaryDirectory() as home, Server(python, Path(home), arguments) as server:
        for name, script in scripts(job):
            chat = Chat(server, job.surface, {home: "<home>", **job.folder.paths})
            cases[f"{job.name}/{name}"] = chat.exchanges
            with stops_recorded(chat):
                script(chat)
    return cases


@contextmanager
def stops_recorded(chat: Chat) -> Iterator[None]:
    """Record why a script cannot continue, so that the other cases are still recorded."""
    try:
        yield
    except (ServerGone, LookupError, TypeError, AttributeError) as error:
        chat.exchanges.append(Exchange("the script stopped", repr(error)))


def scripts(job: Job) -> Iterator[tuple[str, Callable[[Chat], object]]]:
    """List the cases of a job in the order in which they run."""
    agent = AGENTS[job.surface]
    yield "(opening)", lambda chat: opening(chat, agent)
    for definition in job.folder.definitions:
        yield definition.id, agent_walk(agent, definition)
    yield "(shutdown)", lambda chat: chat.request("shutdown", {})


def agent_walk(agent: Callable[[Chat, Definition], Any], definition: Definition) -> Callable[[Chat], object]:
    """Bind a walk to its workflow; a lambda in the loop would bind to the last one."""
    return lambda chat: agent(chat, definition).walk()


def opening(chat: Chat, agent: Any) -> None:
    """Shake hands, badly first, and make the calls that belong to no workflow."""
    chat.request("tools/list", {})
    chat.initialize("1999-12-31")
    chat.initialize()
    for line in (b"not JSON", b"[]", b'{"jsonrpc": "1.0", "id": 1, "method": 7}'):
        chat.line(line, line.decode())
    for method in ("ping", "tools/list", "resources/list", "prompts/list", "server/discover", "no/such"):
        chat.request(method, {})
    chat.request("tools/call", {})
    agent.open(chat)


def crossed(python: str, folder: Folder) -> Recording:
    """Start a run on each surface and read it on every other, all on one data directory."""
    workflow_id = next(definition.id for definition in folder.definitions if len(definition.activities) > 3)
    cases: Recording = {}
    chats: list[Chat] = []
    with TemporaryDirectory() as home, ExitStack() as stack:
        for surface in ("execution", "session", "gated", "navigation"):
            server = stack.enter_context(Server(python, Path(home), ("--surface", surface, *QUICK)))
            chats.append(Chat(server, surface, {home: "<home>"}))
            cases[f"{surface}/crossing/{folder.name}/{workflow_id}"] = chats[-1].exchanges
        for chat in chats:
            with stops_recorded(chat):
                chat.initialize()
        for chat, reader in itertools.product(chats, chats):
            with stops_recorded(chat):
                read_run(reader, started(chat, workflow_id))
    return cases


def started(chat: Chat, workflow_id: str) -> str:
    """Start a run with the tool of the chat's surface and return its token."""
    match chat.surface:
        case "execution":
            return str(chat.call("start_workflow", workflowId=workflow_id).fields["stateToken"])
        case "navigation":
            return str(chat.call("nav_start", workflow_id=workflow_id).fields["state"])
    answer = chat.call("start_session", agent_id="agent", workflow_id=workflow_id)
    return str(answer.fields["session_token"])


def read_run(chat: Chat, token: str) -> None:
    """Read a run, with a token of any surface."""
    match chat.surface:
        case "execution":
            chat.call("continue_workflow", stateToken=token)
        case "session":
            chat.call("get_workflow_status", session_token=token)
            chat.call("get_trace", session_token=token)
        case "gated":
            chat.call("get_workflow", session_token=token)
        case _:
            chat.call("nav_situation", state=token)


class Change(Struct, frozen=True):
    """One value that differs, with the key path that leads to it."""

    path: str
    before: Json
    after: Json
    is_message: bool = False


ABSENT = "(absent)"
# What varies from call to call within one shape of message, and the prefixes under which it is repeated.
SHAPES = (
    (re.compile(r"(?<!\w)['\"`“‘][^'\"`“”‘’\n]*['\"`”’](?!\w)"), "'…'"),
    (re.compile(r"\d+"), "N"),
    (re.compile(r"^\s*(- )?((Next|Warning|Action failed|message): \"?|[A-Z_]{4,}: )+"), ""),
    (re.compile(r" \([^()]*[=<>][^()]*(\([^()]*\)[^()]*)*\)"), " (…)"),
    (re.compile(r"(?<=: )\[?[\w….'-]+((, | \| )[\w….'-]+)*\]?(?=\.?$|, or )"), "…"),
    (re.compile(r"'…'(, '…')+"), "'…'"),
)


def changes(before: Json, after: Json, path: str = "", key: str = "") -> Iterator[Change]:
    """Find where two values differ; `key` is the nearest name above them."""
    match before, after:
        case dict(), dict():
            for name in sorted(before.keys() | after.keys()):
                old, new = before.get(name, ABSENT), after.get(name, ABSENT)
                yield from changes(old, new, f"{path}.{name}", name)
        case list(), list() if len(before) == len(after):
            for old, new in zip(before, after, strict=True):
                yield from changes(old, new, f"{path}[]", key)
        case str(), str() if before != after:
            sentences = key in MESSAGE_FIELDS and (" " in before.strip() or " " in after.strip())
            is_message = sentences and ABSENT not in (before, after)
            yield Change(path, before, after, is_message)
        case _ if before != after or type(before) is not type(after):
            yield Change(path, before, after)


def changed_lines(before: str, after: str) -> Iterator[tuple[str, str]]:
    """Pair the lines that differ between two texts."""
    old, new = before.splitlines(), after.splitlines()
    for kind, a, b, c, d in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if kind != "equal":
            yield from itertools.zip_longest(old[a:b], new[c:d], fillvalue="")


class Report:
    """Differences of two recordings, counted by what they look like."""

    def __init__(self) -> None:
        self.structural: dict[str, Counter[tuple[str, str]]] = {}
        self.messages: Counter[tuple[str, str]] = Counter()
        self.first_seen: dict[Any, str] = {}

    def add(self, change: Change, where: str, names: re.Pattern[str]) -> None:
        if not change.is_message:
            self.differ(change.path, _short(change.before), _short(change.after), where)
            return
        for before, after in changed_lines(change.before, change.after):
            pair = shape_of(before, names), shape_of(after, names)
            if pair[0] != pair[1]:
                self.messages[pair] += 1
                self.first_seen.setdefault(pair, where)

    def differ(self, path: str, before: str, after: str, where: str) -> None:
        self.structural.setdefault(path, Counter())[before, after] += 1
        self.first_seen.setdefault((path, before, after), where)

    def lines(self) -> Iterator[str]:
        """Write the report as Markdown: one line for each place that differs and each shape of message."""
        total = sum(kinds.total() for kinds in self.structural.values())
        yield f"## Structural differences: {len(self.structural)} places, {total} in all\n"
        if self.structural:
            yield "| path | kinds | count | such as before | after | first seen |\n|---|---|---|---|---|---|"
        for path, kinds in sorted(self.structural.items(), key=lambda item: -item[1].total()):
            (example, _count) = kinds.most_common(1)[0]
            seen = self.first_seen[path, *example]
            yield _row(path, str(len(kinds)), str(kinds.total()), *example, seen)
        yield f"\n## Changed messages: {len(self.messages)} shapes, {self.messages.total()} in all\n"
        if self.messages:
            yield "| before | after | count | first seen |\n|---|---|---|---|"
        for pair, count in self.messages.most_common():
            yield _row(*pair, str(count), self.first_seen[pair])


def compare(before: Recording, after: Recording, ignored: frozenset[str]) -> Report:
    """Compare two recordings case by case."""
    report = Report()
    for name in sorted(before.keys() | after.keys()):
        if name not in before or name not in after:
            report.differ("case", *(("present", ABSENT) if name in before else (ABSENT, "present")), name)
            continue
        compare_case(report, name, before[name], after[name], ignored)
    return report


def compare_case(
    report: Report, name: str, before: Sequence[Exchange], after: Sequence[Exchange], ignored: frozenset[str]
) -> None:
    """Compare exchange by exchange, up to where the requests diverge."""
    names = _names(before)
    for number, (old, new) in enumerate(zip(before, after, strict=False)):
        where = f"{name}#{number} {_label(old.request)}"
        asked = [change for change in changes(old.request, new.request) if not change.is_message]
        if asked:
            report.differ("requests diverge", _short(old.request), _short(new.request), where)
            return
        for change in changes(msgspec.to_builtins(old), msgspec.to_builtins(new)):
            if not ignored & set(re.split(r"[.\[\]]+", change.path)):
                report.add(change, where, names)
    if len(before) != len(after):
        report.differ("number of exchanges", str(len(before)), str(len(after)), name)


def _names(exchanges: Sequence[Exchange]) -> re.Pattern[str]:
    """Match the ids and titles of one case, so that messages about different things look the same."""
    names = {
        value
        for item in _objects([[exchange.request, exchange.response] for exchange in exchanges])
        for key, value in item.items()
        if isinstance(value, str) and re.search(r"(^|[a-z_])(id|Id|name|title)$", key) and len(value) > 2
    }
    marked = sorted((name for name in names if re.search(r"[\W_]", name)), key=len, reverse=True)
    plain = sorted(names - set(marked), key=len, reverse=True)
    parts = [rf"(?<![\w-]){re.escape(name)}(?![\w-])" for name in marked]
    parts += [rf"(?<=[(:] ){re.escape(name)}(?![\w-])|(?<=\(){re.escape(name)}(?=\))" for name in plain]
    return re.compile("|".join(parts) or r"(?!)")


def shape_of(line: str, names: re.Pattern[str]) -> str:
    """Replace what varies from call to call: names, quoted words, numbers, lists; quotes look the same."""
    line = names.sub("…", line)
    for pattern, shape in SHAPES:
        line = pattern.sub(shape, line)
    return line.strip()


def _label(request: Json) -> str:
    if not isinstance(request, dict):
        return str(request)
    return str(request.get("params", {}).get("name") or request.get("method"))


def _short(value: Json, most: int = 160) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, sort_keys=True)
    return text if len(text) <= most else f"{text[: most - 1]}…"


def _row(*cells: str) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|").replace("\n", "⏎") for cell in cells) + " |"


def counts(recording: Recording) -> str:
    """Say how many exchanges there are on each surface."""
    total: Counter[str] = Counter()
    for name, exchanges in recording.items():
        total[name.split("/")[0]] += len(exchanges)
    listed = ", ".join(f"{surface} {count}" for surface, count in sorted(total.items()))
    return f"{total.total()} exchanges in {len(recording)} cases: {listed}"


def load(path: Path) -> Recording:
    """Read a recording from its file."""
    return msgspec.json.decode(path.read_bytes(), type=dict[str, list[Exchange]])


def main() -> int:
    """Run the command line and return the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    commands = parser.add_subparsers(dest="command", required=True)
    recording = commands.add_parser("record", help="run the server and write what it said")
    recording.add_argument("out", type=Path)
    recording.add_argument("--python", default=sys.executable, help="interpreter that has the server")
    recording.add_argument(
        "--corpus", type=Path, default=CORPUS, help="folder of workflows beside the bundled"
    )
    comparing = commands.add_parser("compare", help="show what differs; exit 1 if more than words")
    comparing.add_argument("before", type=Path)
    comparing.add_argument("after", type=Path)
    comparing.add_argument("--ignore", action="append", default=[], metavar="KEY", help="key to leave out")
    given = parser.parse_args()
    if given.command == "record":
        # Servers run in a folder of their own; a link must stay a link, or the environment is lost.
        python = os.path.abspath(shutil.which(given.python) or given.python)
        cases = record(python, given.corpus.resolve())
        given.out.write_bytes(msgspec.json.format(msgspec.json.encode(cases), indent=1))
        print(counts(cases))
        return 0
    report = compare(load(given.before), load(given.after), frozenset(given.ignore))
    print("\n".join(report.lines()))
    return 1 if report.structural else 0


if __name__ == "__main__":
    sys.exit(main())
