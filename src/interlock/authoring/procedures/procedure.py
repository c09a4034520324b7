"""Turns Markdown for agents into a step workflow, and lists with its line whatever found no place in it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from unicodedata import normalize

from msgspec import Struct

from interlock.authoring.diagnostics.codes import Report
from interlock.authoring.procedures.approvals import Approval, approvals_in, is_only_approval, quoted_sentence
from interlock.authoring.procedures.outline import (
    Section,
    TextLine,
    bullet_list,
    read_lines,
    sections,
    text_from,
)
from interlock.authoring.procedures.parts import (
    MOST_STEPS,
    AsideKind,
    StepDraft,
    holds_steps,
    parts_of,
    plain_title,
    printable,
)
from interlock.authoring.text.locations import Parsed, SourceLocation, no_locations
from interlock.authoring.text.markdown import read_page
from interlock.core.definition.expressions import EXPRESSION
from interlock.core.values import Json

LONGEST_NAME = 60
LONGEST_LINE = 512
LONGEST_SLUG = 48
ROUNDS = 5
NOT_BY_THE_AGENT = "Interlock asks for the approval; do not ask for it yourself."

_LOCAL_LINK = re.compile(r"\]\((?!https?:|mailto:|#)([^)\s]+)")
_SHELL = re.compile(r"(?<![\w`])!`[^`]+`")
_INCLUDED = re.compile(r"(?<![\w`@/.])@[\w~][\w./~-]*[\w/]")
_ARGUMENT = re.compile(r"\$([1-9])\b")
_KNOWN_FIELDS = ("name", "description", "title", "argument-hint")


class Unmapped(Struct, frozen=True):
    """Something in the file that found no place in the workflow, or only a changed one."""

    line: int
    text: str


class Procedure(Struct, frozen=True):
    """The workflow's fields without its id, the name to make one from, and what was not mapped."""

    name: str
    fields: Mapping[str, Json]
    unmapped: tuple[Unmapped, ...]


class NoProcedure(Struct, frozen=True):
    """Why a Markdown file has no steps."""

    reason: str


def section_titles(text: str) -> list[str]:
    """Return the titles of the sections that hold a procedure, in reading order."""
    lines, _ = read_lines(*_body(text))
    return [section.title for section in sections(lines) if section.level and holds_steps(section)]


def procedure_of(text: str, name: str, wanted_section: str | None = None) -> Procedure | NoProcedure:
    """Read a Markdown file as a procedure, or one of its sections."""
    report = Report()
    text = text.replace("\r", "\n")
    page = read_page("", text, report)
    fields = page.fields
    lines, comments = read_lines(*_body(text))
    outline = sections(lines)
    if wanted_section is not None:
        whole, outline, comments = outline, _within(outline, wanted_section), []
        fields = Parsed("", {}, no_locations)
        if not outline:
            known = ", ".join(f"'{section.title}'" for section in whole if section.level) or "none"
            return NoProcedure(f"there is no section '{wanted_section}'; its sections: {known}")
        name = plain_title(outline[0].title) or name
    if all(section.is_empty for section in outline):
        return NoProcedure("there is no text to make steps from")
    draft = _ProcedureDraft(SourceLocation(fields), outline, name)
    if len(draft.parts.drafts) > MOST_STEPS:
        return NoProcedure(f"it has more than {MOST_STEPS} steps; choose a part with --section")
    workflow = draft.fields()
    unmapped = [*draft.unmapped, *(Unmapped(number, "a comment is left out") for number in comments)]
    unmapped += [Unmapped(one.line, f"front matter: {one.message}") for one in report.diagnostics()]
    return Procedure(draft.name, workflow, tuple(sorted(unmapped, key=lambda note: note.line)))


def _body(text: str) -> tuple[str, int]:
    """Return the text after the front matter, and the number of its first line."""
    lines = text.split("\n")
    if lines[0].rstrip() == "---":
        end = next((index for index, line in enumerate(lines[1:], 1) if line.rstrip() == "---"), None)
        if end is not None:
            return "\n".join(lines[end + 1 :]), end + 2
    return text, 1


def _within(outline: Sequence[Section], title: str) -> list[Section]:
    """Return a section, by its title, with the sections below it."""
    wanted = title.strip().lstrip("#").strip().casefold()
    titles = [section.title.casefold() if section.level else None for section in outline]
    if wanted not in titles:
        return []
    start = titles.index(wanted)
    later = range(start + 1, len(outline))
    end = next((index for index in later if outline[index].level <= outline[start].level), len(outline))
    return list(outline[start:end])


class _ProcedureDraft:
    """One file that is being converted."""

    def __init__(self, fields: SourceLocation, outline: Sequence[Section], name: str) -> None:
        self.unmapped: list[Unmapped] = []
        head = fields.parsed.value
        self._head: Mapping[str, Json] = head if isinstance(head, Mapping) else {}
        self._fields = fields
        self._outline = outline
        self._variables: list[dict[str, Json]] = []
        self._ids: dict[str, int] = {}
        given, heading = self._head.get("name") or self._head.get("title"), outline[0]
        title = given if isinstance(given, str) else heading.title if heading.level == 1 else ""
        self.name = plain_title(title) or name
        self.parts = parts_of(outline, self.name)

    def fields(self) -> dict[str, Json]:
        steps = list(self._steps(self.parts.drafts))
        described = self._head.get("description")
        description = described if isinstance(described, str) else self._first_line()
        fields: dict[str, Json] = {
            "name": self.name,
            "description": _one_line(description) or f"Converted from {self.name}.",
            "version": "1.0.0",
            "preconditions": list(self._entries("preconditions")),
            "metaGuidance": list(self._entries("rules")),
            "variables": list(self._variables),
            "steps": steps,
        }
        for section in self._asides("other"):
            count = sum(not line.is_blank for line in section.lines)
            lines = "1 line" if count == 1 else f"{count} lines"
            text = f"the section '{quoted_sentence(section.title)}' ({lines}) is part of no step"
            self.unmapped.append(Unmapped(section.line, text))
        self._note_front_matter()
        return {name: value for name, value in fields.items() if value}

    def _first_line(self) -> str:
        lines = (line for section in self._outline for line in section.lines)
        return next((line.text for line in lines if not line.is_code and not line.is_blank), "")

    def _entries(self, kind: AsideKind) -> Iterator[str]:
        """Yield the bullets of the sections of a kind, or the text of one without bullets; each once."""
        seen = set[str]()
        for section in self._asides(kind):
            found = bullet_list(section.lines)
            parts = [section.lines]
            if found is not None:
                parts = [found.before, *(item.lines for item in found.items), found.after]
            for text in map(self._text, parts):
                if text.strip() and text not in seen:
                    seen.add(text)
                    yield text

    def _asides(self, kind: AsideKind) -> list[Section]:
        return [aside.section for aside in self.parts.asides if aside.kind == kind]

    def _note_front_matter(self) -> None:
        for name in self._head:
            if name not in _KNOWN_FIELDS:
                text = f"'{quoted_sentence(name)}' of the front matter has no counterpart"
                self.unmapped.append(Unmapped(self._fields.key(name).located().line, text))

    def _steps(self, drafts: Sequence[StepDraft]) -> Iterator[Json]:
        """Yield the items of the workflow. What follows a gate runs only if the gate was approved."""
        condition: dict[str, Json] = {}
        pending = list(drafts)
        while pending:
            draft = pending.pop(0)
            asked, step_id = self._asked(draft), self._new_id(draft.title)
            if is_only_approval(draft.lines):
                gate = self._gate(draft.title, step_id, asked[0])
                yield {**gate, **_if("condition", condition)}
                condition = self._approved()
                continue
            if pending and is_only_approval(pending[0].lines):
                asked += [Approval(one.line, one.sentence, "after") for one in self._asked(pending.pop(0))]
            sides = {one.side: one for one in reversed(asked)}
            if "before" in sides:
                gate = self._gate(draft.title, step_id, sides["before"])
                yield {**gate, **_if("condition", condition)}
                condition = self._approved()
            text = self._text(draft.lines) or draft.title
            prompt = f"{text}\n\n{NOT_BY_THE_AGENT}" if asked else text
            step: dict[str, Json] = {"id": step_id, "title": draft.title, "prompt": prompt}
            if "after" not in sides:
                yield {**step, **_if("runCondition", condition)}
                continue
            gate = self._gate(draft.title, step_id, sides["after"], with_changes=True)
            rounds = self._rounds(draft.title, step, gate)
            yield {**rounds, **_if("runCondition", condition)}
            condition = self._approved()

    def _asked(self, draft: StepDraft) -> list[Approval]:
        """Return where a step asks for approval; what becomes no gate of its own is listed."""
        asked = dict[str, Approval]()
        for found in approvals_in(draft.lines):
            if not isinstance(found, Approval):
                text = f"no gate, because {found.reason}: {found.sentence}"
            elif found.side in asked:
                text = f"asked by the same gate as line {asked[found.side].line}: {found.sentence}"
            else:
                asked[found.side] = found
                continue
            self.unmapped.append(Unmapped(found.line, text))
        return list(asked.values())

    def _gate(
        self, title: str, step_id: str, asked: Approval, *, with_changes: bool = False
    ) -> dict[str, Json]:
        gate_id = self._new_id(f"approve-{step_id}")
        variable = re.sub(r"\W+", "_", gate_id)
        values = {"approve": ("Approve", "approved")}
        if with_changes:
            values["change"] = ("Ask for changes", "changes")
        values["stop"] = ("Stop here", "stopped")
        about = f"The answer for {title}: open, {', '.join(value for _, value in values.values())}"
        self._variables.append(
            {"name": variable, "type": "string", "description": about, "defaultValue": "open"}
        )
        return {
            "type": "gate",
            "id": gate_id,
            "name": f"Approve: {title}",
            "message": f"{title}. The text asks for approval here: {asked.sentence}",
            "options": [
                {"id": option, "label": label, "effect": {"setVariable": {variable: value}}}
                for option, (label, value) in values.items()
            ],
        }

    def _approved(self) -> dict[str, Json]:
        """Return the condition that the last gate was approved."""
        return {"var": self._variables[-1]["name"], "equals": "approved"}

    def _rounds(self, title: str, step: dict[str, Json], gate: dict[str, Json]) -> dict[str, Json]:
        """Return the loop in which a step is done again until its gate is settled."""
        settled: Json = {"var": self._variables[-1]["name"], "in": ["approved", "stopped"]}
        return {
            "type": "loop",
            "id": self._new_id(f"rounds-{step['id']}"),
            "title": title,
            "loop": {"type": "until", "condition": settled, "maxIterations": ROUNDS},
            "body": [step, gate],
        }

    def _text(self, lines: Sequence[TextLine]) -> str:
        """Return a text for the agent; what Interlock would fill in by itself is rewritten and listed."""
        shown = list[TextLine]()
        for line in lines:
            text = EXPRESSION.sub(r"{\1}", line.text)
            if text != line.text:
                self.unmapped.append(Unmapped(line.number, "{{…}} is written {…}, or it would be filled in"))
            if not line.is_code:
                self._note_references(line)
            shown.append(TextLine(line.number, self._with_arguments(text, line.is_code), line.is_code))
        return printable(text_from(shown))

    def _with_arguments(self, text: str, is_code: bool) -> str:
        """Fill in the arguments of a slash command as variables."""
        if "$ARGUMENTS" in text:
            self._declare("arguments")
            text = text.replace("$ARGUMENTS", "{{arguments}}")
        if "argument-hint" in self._head and not is_code:
            for number in _ARGUMENT.findall(text):
                self._declare(f"argument_{number}")
            text = _ARGUMENT.sub(r"{{argument_\1}}", text)
        return text

    def _declare(self, name: str) -> None:
        if all(known["name"] != name for known in self._variables):
            about = quoted_sentence(str(self._head.get("argument-hint") or "What the command is called with"))
            self._variables.insert(
                0, {"name": name, "type": "string", "description": about, "required": True}
            )

    def _note_references(self, line: TextLine) -> None:
        texts = [f"the file {file[:80]} is linked, and not copied" for file in _LOCAL_LINK.findall(line.text)]
        if _SHELL.search(line.text):
            texts.append("!`…` is not run for the agent; the step shows it as text")
        for file in _INCLUDED.findall(line.text):
            texts.append(f"{file[:80]} is not read for the agent; the step names it")
        self.unmapped += (Unmapped(line.number, text) for text in texts)

    def _new_id(self, title: str) -> str:
        base = _slug(title, "-")[:LONGEST_SLUG].strip("-") or "step"
        found = base
        while found in self._ids:
            self._ids[base] += 1
            found = f"{base}-{self._ids[base]}"
        self._ids[found] = 1
        return found


def _if(field: str, condition: dict[str, Json]) -> dict[str, Json]:
    return {field: condition} if condition else {}


def _one_line(text: str) -> str:
    plain = printable(" ".join(text.split()))
    return plain if len(plain) <= LONGEST_LINE else plain[: LONGEST_LINE - 1].rstrip() + "…"


def slug(text: str) -> str:
    """Return a name for an id: lower-case letters, digits and underscores, beginning with a letter."""
    return re.sub(r"^[^a-z]+", "", _slug(text, "_"))[:LONGEST_NAME].strip("_") or "procedure"


def _slug(text: str, separator: str) -> str:
    plain = normalize("NFKD", text).encode("ascii", "ignore").decode().lower()
    return re.sub(r"[^a-z0-9]+", separator, plain).strip(separator)
