"""What can be read beside the tools: workflows and their graphs, formats, contracts, the caller's runs."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from typing import Literal

import msgspec
from msgspec import Struct

from interlock.authoring.compile.builtins import contracts
from interlock.authoring.filetypes.schemas.published_schemas import published
from interlock.authoring.graph.mermaid import mermaid_of
from interlock.authoring.graph.model import drawing_of
from interlock.authoring.library import Diagnostic, Library
from interlock.ledger.errors import LedgerError
from interlock.ledger.ledger import Ledger
from interlock.ledger.queries.heads import head_digests
from interlock.ledger.queries.status import find_session, notes_of, recent_references, session_status
from interlock.ledger.runs.whole_session import WholeSession
from interlock.ledger.transfer.export_import import export_session
from interlock.ledger.transfer.text_export import as_markdown
from interlock.surfaces.prompts import MOST_COMPLETIONS

SCHEME = "interlock://"
JSON, MARKDOWN, MERMAID = "application/json", "text/markdown", "text/vnd.mermaid"


class ResourceText(Struct, frozen=True):
    """The content of a resource."""

    uri: str
    media_type: str
    text: str


class ResourceLine(Struct, frozen=True):
    """A resource as a client lists it."""

    uri: str
    name: str
    description: str
    media_type: str = JSON


class Template(Struct, frozen=True):
    """A family of resources; `variable` is the part of the URI that is filled in."""

    uri: str
    name: str
    description: str
    media_type: str
    variable: str

    def value_in(self, uri: str) -> str | None:
        """Return what a URI fills in, if it is of this family."""
        pattern = re.escape(self.uri).replace(re.escape(f"{{{self.variable}}}"), r"([A-Za-z0-9._-]{1,128})")
        match = re.fullmatch(pattern, uri)
        return match.group(1) if match else None


WORKFLOWS = f"{SCHEME}workflows"
WORKFLOW = Template(f"{WORKFLOWS}/{{id}}", "workflow", "A compiled workflow.", JSON, "id")
GRAPH = Template(f"{WORKFLOWS}/{{id}}/graph", "graph", "A workflow as a Mermaid chart.", MERMAID, "id")
SCHEMA = Template(f"{SCHEME}schemas/{{name}}", "schema", "The format of a workflow file.", JSON, "name")
CONTRACT = Template(f"{SCHEME}contracts/{{ref}}", "contract", "What an artifact must hold.", JSON, "ref")
BRIEF = Template(f"{SCHEME}runs/{{session}}/brief", "brief", "Where a session stands.", JSON, "session")
TRANSCRIPT = Template(
    f"{SCHEME}runs/{{session}}/transcript", "transcript", "All that was recorded.", MARKDOWN, "session"
)
OF_LIBRARY = (WORKFLOW, GRAPH, SCHEMA, CONTRACT)
OF_LEDGER = (BRIEF, TRANSCRIPT)


class Topic(Struct, frozen=True):
    """What the content of a resource follows: a session's log, a workflow, the list of all, or nothing."""

    kind: Literal["session", "workflow", "workflows", "fixed"]
    id: str = ""


ALL_WORKFLOWS, FIXED = Topic("workflows"), Topic("fixed")
OF_FILES = ("workflow", "workflows")


class Resources:
    """The resources of one surface. Without a ledger there are no runs."""

    def __init__(self, library: Library, ledger: Ledger | None) -> None:
        self._library = library
        self._ledger = ledger

    def all(self) -> list[ResourceLine]:
        """Return the resources whose number does not grow with use."""
        lines = [ResourceLine(WORKFLOWS, "workflows", "The workflows that can be run.")]
        for entry in self._library.listing().entries:
            if not entry.hidden:
                about = entry.description or entry.name
                lines.append(ResourceLine(_uri(WORKFLOW, entry.id), entry.id, about))
                lines.append(ResourceLine(_uri(GRAPH, entry.id), f"{entry.id} graph", about, MERMAID))
        for name in published():
            lines.append(ResourceLine(_uri(SCHEMA, name), name, SCHEMA.description))
        lines += [ResourceLine(_uri(CONTRACT, ref), ref, CONTRACT.description) for ref in contracts()]
        return lines

    def templates(self) -> tuple[Template, ...]:
        """Return the families of resources."""
        return OF_LIBRARY if self._ledger is None else (*OF_LIBRARY, *OF_LEDGER)

    def read(self, uri: str) -> ResourceText | None:
        """Return the content of a resource; None if there is none, or if it is another owner's."""
        if uri == WORKFLOWS:
            entries = [entry for entry in self._library.listing().entries if not entry.hidden]
            return ResourceText(uri, JSON, _json(entries) or "")
        for template in self.templates():
            if (value := template.value_in(uri)) is not None:
                text = self._text(template, value)
                return ResourceText(uri, template.media_type, text) if text is not None else None
        return None

    def topic_of(self, uri: str) -> Topic | None:
        """Return what a resource follows; None if there is no such resource for the caller."""
        if uri == WORKFLOWS:
            return ALL_WORKFLOWS
        for template in self.templates():
            if (value := template.value_in(uri)) is None:
                continue
            if template in OF_LEDGER:
                assert self._ledger is not None
                try:
                    return Topic("session", find_session(self._ledger, value).session_id)
                except LedgerError:
                    return None
            if template in (WORKFLOW, GRAPH):
                loaded = self._library.load(value)
                return None if isinstance(loaded, Diagnostic) else Topic("workflow", loaded.workflow.id)
            return FIXED if self._text(template, value) is not None else None
        return None

    def versions(self, topics: Collection[Topic]) -> dict[Topic, str | None]:
        """Return for each topic what changes when it does; None if it is there no more.

        However many topics there are, this is one read of the store and one look at the files.
        """
        sessions = [topic.id for topic in topics if topic.kind == "session"]
        digests = head_digests(self._ledger, sessions) if self._ledger is not None and sessions else {}
        hashes = self._library.hashes() if any(topic.kind in OF_FILES for topic in topics) else {}
        versions: dict[Topic, str | None] = {}
        for topic in topics:
            match topic.kind:
                case "session":
                    versions[topic] = digests[topic.id].hex() if topic.id in digests else None
                case "workflow":
                    versions[topic] = hashes.get(topic.id)
                case "workflows":
                    versions[topic] = " ".join(sorted(f"{name}={hash}" for name, hash in hashes.items()))
                case "fixed":
                    versions[topic] = ""
        return versions

    def completions(self, uri: str, variable: str, beginning: str) -> list[str]:
        """Return values for the variable of a template that begin as given."""
        template = next((one for one in self.templates() if (one.uri, one.variable) == (uri, variable)), None)
        if template is None:
            return []
        values: Iterable[str]
        match template.variable:
            case "id":
                values = (entry.id for entry in self._library.listing().entries if not entry.hidden)
            case "name":
                values = published()
            case "ref":
                values = contracts()
            case _:
                assert self._ledger is not None
                values = recent_references(self._ledger, MOST_COMPLETIONS)
        return [value for value in values if value.startswith(beginning)][:MOST_COMPLETIONS]

    def _text(self, template: Template, value: str) -> str | None:
        match template.variable:
            case "name":
                return _json(published().get(value))
            case "ref":
                return _json(contracts().get(value))
            case "id":
                loaded = self._library.load(value)
                if isinstance(loaded, Diagnostic):
                    return None
                is_graph = template is GRAPH
                return mermaid_of(drawing_of(loaded.workflow)) if is_graph else _json(loaded.workflow)
        ledger = self._ledger
        assert ledger is not None
        try:
            session = find_session(ledger, value)
        except LedgerError:
            return None
        if template is TRANSCRIPT:
            return as_markdown(export_session(ledger.store, session, ledger.pins, ledger.clock()))
        return _json(
            {"status": session_status(WholeSession(ledger, session)), "notes": notes_of(ledger, session)}
        )


def _uri(template: Template, value: str) -> str:
    return template.uri.replace(f"{{{template.variable}}}", value)


def _json(value: object) -> str | None:
    return None if value is None else msgspec.json.format(msgspec.json.encode(value), indent=2).decode()
