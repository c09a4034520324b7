"""Every fault that a workflow file can have, as a closed table of codes.

Validation, the list of broken files and the generated page of codes all speak from this one table.
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

from msgspec import Struct

from interlock.authoring.diagnostics.diagnostic import Diagnostic, Severity, in_reading_order
from interlock.authoring.text.locations import Fault, Location, SourceLocation

__all__ = ["CODES", "Diagnostic", "DiagnosticKind", "Report", "did_you_mean"]


class DiagnosticKind(Struct, frozen=True):
    """One kind of fault: what it is called, why it matters, and what usually mends it."""

    code: str
    title: str
    severity: Severity
    explanation: str
    fix: str


class Report:
    """Collects the problems of one workflow, each place and message once."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, str, int, int, str], Diagnostic] = {}
        self.errors = 0

    def add(self, code: str, message: str, at: SourceLocation, fix: str = "") -> None:
        self.fault(at.parsed.file, Fault(code, message, at.located(), fix))

    def fault(self, file: str, fault: Fault) -> None:
        """Record a fault that knows its place itself."""
        known, location = CODES[fault.code], fault.location
        fix = fault.fix or known.fix
        diagnostic = Diagnostic(
            fault.code, fault.message, fix, file, location.line, location.column, known.severity
        )
        self._found.setdefault((fault.code, file, location.line, location.column, fault.message), diagnostic)

        self.errors += known.severity == "error"

    def tolerate(self, other: Report) -> None:
        """Take over the problems of a text that is served as it stands, whatever they are."""
        for one in other.diagnostics():
            location = Location(one.line, one.column)
            code = one.code if one.severity == "warning" or one.code == "IL009" else "IL011"
            fix = one.fix if code == one.code else ""
            self.fault(one.file, Fault(code, one.message, location, fix))

    @property
    def failed(self) -> bool:
        return self.errors > 0

    def diagnostics(self) -> tuple[Diagnostic, ...]:
        return tuple(sorted(self._found.values(), key=in_reading_order))


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Name the nearest known word as a fix, or nothing."""
    near = get_close_matches(word, list(known), n=1, cutoff=0.72)
    return f"did you mean '{near[0]}'?" if near else ""


_TABLE: tuple[tuple[str, str, Severity, str, str], ...] = (
    (
        "IL001",
        "unreadable file",
        "error",
        "The file cannot be opened, or it is not UTF-8 text.",
        "save it as UTF-8 and check its permissions",
    ),
    (
        "IL002",
        "file too large",
        "error",
        "A workflow file may hold at most 1 MB.",
        "move long texts into resources",
    ),
    ("IL003", "nested too deeply", "error", "Values may nest 64 levels deep.", "flatten the structure"),
    ("IL004", "syntax error", "error", "The text is not valid in its format.", "mend the syntax here"),
    (
        "IL005",
        "character not allowed",
        "error",
        "NUL characters and unpaired surrogates cannot be stored or sent.",
        "remove the character",
    ),
    (
        "IL006",
        "duplicate key",
        "warning",
        "The same key stands twice in one object; the last one counts.",
        "keep one of them",
    ),
    (
        "IL007",
        "YAML feature not allowed",
        "error",
        "Tags, several documents and aliases that multiply are refused.",
        "write the value out",
    ),
    (
        "IL008",
        "loose TOON",
        "warning",
        "The file is not valid TOON and was read leniently; parts may not mean what they look like.",
        "mend what the message names, or convert the file to YAML",
    ),
    (
        "IL009",
        "path leaves its folder",
        "error",
        "A file, or a link to one, lies outside the folder it belongs to.",
        "copy the file into the folder",
    ),
    (
        "IL010",
        "number not allowed",
        "error",
        "Numbers must be finite, integers within 53 bits.",
        "write it as text",
    ),
    (
        "IL011",
        "text with faults",
        "warning",
        "A skill, resource or template cannot be read as its format; it is served as it stands.",
        "mend what the message names",
    ),
    ("IL101", "missing field", "error", "A required field is absent.", "add the field"),
    (
        "IL102",
        "wrong type",
        "error",
        "The value is of another type than the field takes.",
        "change the value",
    ),
    (
        "IL103",
        "value not allowed",
        "error",
        "The field takes one of a few words.",
        "use one of the words that the message lists",
    ),
    (
        "IL104",
        "too long or too short",
        "warning",
        "The text is outside the length its field is made for; clients may cut it.",
        "shorten or lengthen it",
    ),
    (
        "IL105",
        "unknown field",
        "warning",
        "No field of this name is known here; it is kept, and has no effect.",
        "remove it or correct its name",
    ),
    ("IL106", "empty", "error", "The value must not be empty.", "fill it in"),
    (
        "IL107",
        "odd version",
        "warning",
        "Versions are three numbers with dots, such as 1.2.0.",
        'write it as text, such as "1.2.0"',
    ),
    ("IL108", "out of range", "error", "The number is outside its range.", "choose a number in the range"),
    ("IL109", "idle entry", "warning", "An entry of a list is empty or stands twice.", "remove it"),
    (
        "IL110",
        "step without words",
        "error",
        "A step needs prompt, promptBlocks or templateCall; in an activity, a name is enough.",
        "say what the step should do",
    ),
    (
        "IL201",
        "duplicate id",
        "error",
        "Two things of the same kind share an id, so that neither can be named.",
        "rename one of them",
    ),
    (
        "IL202",
        "unknown activity",
        "error",
        "A way leads to an activity that the workflow does not have.",
        "correct the id",
    ),
    (
        "IL220",
        "borrowed way leads nowhere",
        "warning",
        "A borrowed activity names a way that only the workflow it comes from has. The way is passed over; "
        "without any other, the run ends there.",
        "borrow that activity too, or write the activity out here",
    ),
    ("IL203", "unknown step", "error", "A step is named that the workflow does not have.", "correct the id"),
    (
        "IL204",
        "unknown checkpoint",
        "warning",
        "A step names a checkpoint that its activity does not have; nothing is asked there.",
        "correct the id or add the checkpoint",
    ),
    (
        "IL205",
        "unknown contract",
        "warning",
        "No contract of this name is known; only the artifact's kind is checked.",
        "use a known contract, or give output.schema and output.example",
    ),
    (
        "IL206",
        "unknown skill",
        "warning",
        "The skill is neither in the workflow nor in meta.",
        "correct the id or add the skill",
    ),
    (
        "IL207",
        "unknown resource",
        "warning",
        "No resource has this index.",
        "correct the index or add the resource",
    ),
    (
        "IL208",
        "unknown function",
        "warning",
        "A step refers to a function that nothing defines.",
        "define it in functionDefinitions",
    ),
    (
        "IL209",
        "unknown assessment",
        "error",
        "A step refers to an assessment that nothing defines.",
        "define it in assessments",
    ),
    ("IL210", "unknown template", "error", "No template has this name.", "correct the name"),
    (
        "IL211",
        "template argument missing",
        "error",
        "The template needs an argument that the call does not give.",
        "add it to args",
    ),
    ("IL212", "unknown feature", "warning", "No feature has this name.", "correct the name"),
    ("IL213", "unknown reference", "warning", "No built-in reference has this name.", "correct the name"),
    (
        "IL214",
        "unknown option",
        "error",
        "defaultOption names none of the checkpoint's options.",
        "name one of the options",
    ),
    (
        "IL215",
        "duplicate step id",
        "warning",
        "Two steps share an id; the later one is known as id#2.",
        "rename one of them",
    ),
    (
        "IL216",
        "activity cannot be borrowed",
        "error",
        "The activity file that is named does not exist.",
        "correct the reference",
    ),
    (
        "IL217",
        "text without a step",
        "warning",
        "A Markdown file belongs to no step of the workflow.",
        "name it after a step",
    ),
    (
        "IL218",
        "unknown workflow",
        "warning",
        "A trigger starts a workflow that none of the sources has.",
        "correct the id, or add the source that brings the workflow",
    ),
    (
        "IL219",
        "unknown level",
        "warning",
        "A consequence waits for a level that none of its assessments has; it never comes to pass.",
        "use a level of the assessment",
    ),
    (
        "IL301",
        "bad condition",
        "error",
        "The condition has an unknown shape or operator.",
        "write it as the documentation of conditions shows",
    ),
    ("IL302", "bad pattern", "error", "The regular expression cannot be compiled.", "correct the pattern"),
    (
        "IL303",
        "slow pattern",
        "warning",
        "RE2 cannot run this pattern; it runs under a time limit.",
        "avoid look-around and back-references",
    ),
    (
        "IL304",
        "contradictory condition",
        "warning",
        "No values of the variables make this condition true.",
        "correct the condition",
    ),
    (
        "IL305",
        "loop without bound",
        "error",
        "A loop needs maxIterations, so that it ends whatever happens.",
        "add maxIterations (1 to 1000)",
    ),
    (
        "IL306",
        "loop without steering",
        "error",
        "The loop's kind needs a field that says when it runs or ends.",
        "add the field that the message names",
    ),
    (
        "IL307",
        "loop never told to stop",
        "warning",
        "The loop goes by a loop_control decision, and no step in it makes one.",
        "add outputContract wr.contracts.loop_control to the step that decides",
    ),
    (
        "IL401",
        "bad id",
        "error",
        "The id does not match its pattern.",
        "use lower-case letters, digits and hyphens",
    ),
    (
        "IL402",
        "id without namespace",
        "warning",
        "Step workflows are named namespace.name; ids without a dot run, and may collide.",
        "rename it as suggested",
    ),
    (
        "IL403",
        "reserved namespace",
        "error",
        "wr.* belongs to the built-in workflows.",
        "mount the folder under a name of its own: --workflows NAME=PATH",
    ),
    (
        "IL404",
        "duplicate workflow id",
        "warning",
        "Two files of one source define the same workflow; the first is used.",
        "rename one of them",
    ),
    (
        "IL405",
        "ids look the same to lookup",
        "warning",
        "The lookup surface shows '.' and '_' as '-', and two ids become one.",
        "rename one of them",
    ),
    (
        "IL406",
        "server too old",
        "error",
        "The workflow asks for a newer server than this one.",
        "update interlock",
    ),
    ("IL501", "unreachable step", "warning", "No way leads to this step.", "correct its condition"),
    (
        "IL502",
        "unreachable activity",
        "warning",
        "No transition, decision, option, loop or recognition pattern leads to this activity.",
        "add a way to it, or remove it",
    ),
    (
        "IL503",
        "options without consequence",
        "warning",
        "All options of the checkpoint do the same: nothing. The answer changes nothing that follows.",
        "give an option an effect",
    ),
    (
        "IL504",
        "transition never taken",
        "warning",
        "An earlier transition always wins.",
        "remove it or change the order",
    ),
    (
        "IL505",
        "no default transition",
        "warning",
        "If none of the conditions holds, the run is stuck here.",
        "mark one transition with isDefault",
    ),
    (
        "IL506",
        "variable never set",
        "warning",
        "A condition reads a variable that nothing in the workflow sets or declares a default for.",
        "let an option or a step set it, or give it a default",
    ),
    (
        "IL507",
        "undeclared variable",
        "warning",
        "The workflow declares its variables, and this one is not among them.",
        "declare it or correct its name",
    ),
    (
        "IL508",
        "checkpoint bound to no step",
        "warning",
        "No step names this checkpoint; it is asked after the steps of its activity.",
        "name it in the step it belongs to: checkpoint: <id>",
    ),
    (
        "IL509",
        "prompt over its budget",
        "warning",
        "Prompts are made for at most 8192 characters.",
        "split the step or move text into a resource",
    ),
    (
        "IL510",
        "expression in a prompt",
        "warning",
        "Prompts interpolate {{a.b}} only; this expression stays as written.",
        "set a variable and name it",
    ),
    (
        "IL511",
        "example fails its schema",
        "error",
        "The example of an output must pass the schema it illustrates.",
        "correct the example or the schema",
    ),
    (
        "IL512",
        "workflow not found",
        "error",
        "No source has a workflow of this id.",
        "see the list of workflows",
    ),
    (
        "IL601",
        "scenario names nothing",
        "error",
        "A scenario names a step, a gate or an option that its workflow does not have.",
        "correct the name",
    ),
)

CODES: dict[str, DiagnosticKind] = {row[0]: DiagnosticKind(*row) for row in _TABLE}
