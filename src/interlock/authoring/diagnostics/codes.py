"""The closed table of diagnostic codes, and the report that collects diagnostics.

Validation, the listing of broken files and the generated documentation all use this one table.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches

from msgspec import Struct

from interlock.authoring.diagnostics.diagnostic import Diagnostic, Severity, in_reading_order
from interlock.authoring.text.locations import START_OF_FILE, Location, SourceLocation

__all__ = ["CODES", "Diagnostic", "DiagnosticKind", "Report", "did_you_mean", "one_of"]


# Warnings that are errors where they can only be a mistake: unknown names, and what contradicts its own file.
UNKNOWN_NAMES = ("IL105", "IL204", "IL205", "IL212", "IL213", "IL304", "IL507", "IL513")
INFERRED = "IL516"
STRICT = (*UNKNOWN_NAMES, "IL222", "IL514")


class DiagnosticKind(Struct, frozen=True):
    """One kind of diagnostic: its title, why it matters, and what usually resolves it."""

    code: str
    title: str
    severity: Severity
    explanation: str
    next_action: str


class Report:
    """Collects the diagnostics of one workflow, without duplicates."""

    def __init__(self) -> None:
        self._diagnostics: dict[tuple[str, str, int, int, str], Diagnostic] = {}
        self.errors = 0
        self.unknown_names = 0

    def add(self, code: str, message: str, at: SourceLocation, next_action: str = "") -> None:
        """Report a diagnostic at a value of a parsed file."""
        strictness = at.parsed.strictness if code in STRICT else "lenient"
        # An unknown name or value comes with a next action of its own if it resembles a known one.
        is_plain = strictness == "resembling" and code in UNKNOWN_NAMES and not next_action
        is_strict = strictness != "lenient" and not is_plain
        severity: Severity | None = "error" if is_strict else None
        self.unknown_names += is_strict
        self.add_at(at.parsed.file, code, message, at.located(), next_action, severity)

    def add_at(
        self,
        file: str,
        code: str,
        message: str,
        location: Location = START_OF_FILE,
        next_action: str = "",
        severity: Severity | None = None,
    ) -> None:
        """Report a diagnostic at a line and column; next action and severity are by default the code's."""
        kind = CODES[code]
        severity = severity or kind.severity
        diagnostic = Diagnostic(
            code,
            message,
            next_action or kind.next_action,
            file,
            location.line,
            location.column,
            severity,
        )
        self._diagnostics.setdefault((code, file, location.line, location.column, message), diagnostic)
        self.errors += severity == "error"

    def add_as_warnings(self, other: Report) -> None:
        """Add the diagnostics of a text that is served as it is; only IL009 stays an error."""
        for diagnostic in other.diagnostics():
            location = Location(diagnostic.line, diagnostic.column)
            if diagnostic.severity != "error" or diagnostic.code == "IL009":
                code, next_action = diagnostic.code, diagnostic.next_action
            else:
                code, next_action = "IL011", ""
            self.add_at(diagnostic.file, code, diagnostic.message, location, next_action)

    def add_independent(self, other: Report) -> None:
        """Add what is wrong whatever else a broken file declares: fields, conditions, loops and ids."""
        for diagnostic in other.diagnostics():
            if diagnostic.code[:3] in ("IL1", "IL3", "IL4"):
                location, severity = Location(diagnostic.line, diagnostic.column), diagnostic.severity
                fix = diagnostic.next_action
                self.add_at(diagnostic.file, diagnostic.code, diagnostic.message, location, fix, severity)

    @property
    def failed(self) -> bool:
        return self.errors > 0

    def diagnostics(self) -> tuple[Diagnostic, ...]:
        return tuple(sorted(self._diagnostics.values(), key=in_reading_order))


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Suggest the nearest known word as the next action, or return nothing."""
    words = list(known)
    near = get_close_matches(word, words, n=1, cutoff=0.72)
    near = near or [known_word for known_word in words if sorted(known_word) == sorted(word)][:1]
    near = near or [longer for longer in words if len(word) > 3 and longer.lower().endswith(word.lower())][:1]
    return f"did you mean '{near[0]}'?" if near else ""


def one_of(word: str, known: Sequence[str]) -> str:
    """Suggest the nearest of a few known words, or name them all."""
    return did_you_mean(word, known) or f"use one of: {', '.join(known)}"


_TABLE: tuple[tuple[str, str, Severity, str, str], ...] = (
    (
        "IL001",
        "unreadable file",
        "error",
        "The file cannot be opened, it is not UTF-8 text, or its name does not tell its format.",
        "save it as UTF-8 and check its permissions",
    ),
    (
        "IL002",
        "file too large",
        "error",
        "A workflow file can have at most 1 MB.",
        "move long texts into resources",
    ),
    (
        "IL003",
        "nested too deeply",
        "error",
        "Values can be nested at most 64 levels deep.",
        "flatten the structure",
    ),
    (
        "IL004",
        "syntax error",
        "error",
        "The text is not valid in its format.",
        "fix the syntax here",
    ),
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
        "The same key occurs twice in one object; the last one is used.",
        "keep one of them",
    ),
    (
        "IL007",
        "YAML feature not allowed",
        "error",
        "Tags, several documents in one file, and aliases that expand to too many values are not allowed.",
        "write the value out",
    ),
    (
        "IL008",
        "invalid TOON",
        "warning",
        "The file is not valid TOON and was read leniently; parts of it may not mean what they look like.",
        "fix what the message names, or convert the file to YAML",
    ),
    (
        "IL009",
        "file outside its folder",
        "error",
        "The file, or the target of a link, is outside the folder it belongs to.",
        "copy the file into the folder",
    ),
    (
        "IL010",
        "number not allowed",
        "error",
        "Numbers must be finite, and integers must fit in 53 bits.",
        "write it as text",
    ),
    (
        "IL011",
        "invalid text",
        "warning",
        "A skill, resource or template is not valid in its format; it is served as it is.",
        "fix what the message names",
    ),
    (
        "IL101",
        "missing field",
        "error",
        "A required field is missing.",
        "add the field",
    ),
    (
        "IL102",
        "wrong type",
        "error",
        "The value does not have the type that the field expects.",
        "change the value",
    ),
    (
        "IL103",
        "value not allowed",
        "error",
        "The field accepts only certain values.",
        "use one of the values that the message lists",
    ),
    (
        "IL104",
        "too long or too short",
        "warning",
        "The length of the text is outside the range for its field; clients may cut it.",
        "shorten or lengthen it",
    ),
    (
        "IL105",
        "unknown field",
        "warning",
        "No field of this name is known here. In a file of our own form this is an error; elsewhere the "
        "field is kept, but has no effect.",
        "remove it or correct its name",
    ),
    (
        "IL106",
        "empty value",
        "error",
        "The value must not be empty.",
        "fill it in",
    ),
    (
        "IL107",
        "unusual version",
        "warning",
        "A version has three numbers separated by dots, such as 1.2.0.",
        'write it as text, such as "1.2.0"',
    ),
    (
        "IL108",
        "out of range",
        "error",
        "The number is outside the allowed range.",
        "choose a number within the range",
    ),
    (
        "IL109",
        "redundant entry",
        "warning",
        "A list entry is empty or occurs twice.",
        "remove it",
    ),
    (
        "IL110",
        "step without a prompt",
        "error",
        "A step needs prompt, promptBlocks or templateCall; in an activity, a name is enough.",
        "say what the step should do",
    ),
    (
        "IL111",
        "newer format of activity folders",
        "error",
        "The folder is in a newer generation of the activity format than Interlock reads: its steps have a "
        "kind (technique, action, checkpoint), activities name their exits, and the head file has a graph.",
        "use the release of the workflow before that format, or write it anew in Interlock's YAML",
    ),
    (
        "IL201",
        "duplicate id",
        "error",
        "Two things of the same kind have the same id, so neither can be referred to.",
        "rename one of them",
    ),
    (
        "IL202",
        "unknown activity",
        "error",
        "The workflow has no activity with this id.",
        "correct the id",
    ),
    (
        "IL220",
        "target missing for a borrowed activity",
        "warning",
        "A borrowed activity names a target that only the workflow it comes from has. The target "
        "is ignored; if there is no other, the run ends there.",
        "borrow that activity too, or write the activity out here",
    ),
    (
        "IL225",
        "first activity not declared",
        "warning",
        "The workflow has transitions and no initialActivity, so a run begins with the one activity that no "
        "other leads to. A run may begin with any activity only if none leads to another.",
        "add initialActivity",
    ),
    (
        "IL226",
        "first activity unclear",
        "error",
        "The workflow has transitions and no initialActivity, and several activities that no other leads to, "
        "or none. An agent that could choose where to begin could begin after a gate.",
        "add initialActivity",
    ),
    (
        "IL203",
        "unknown step",
        "error",
        "The workflow has no step with this id.",
        "correct the id",
    ),
    (
        "IL204",
        "unknown checkpoint",
        "warning",
        "A step names a checkpoint that its activity does not have; nothing is asked there. In a file of our "
        "own form this is an error.",
        "correct the id or add the checkpoint",
    ),
    (
        "IL205",
        "unknown contract",
        "warning",
        "No contract has this name. In a file of our own form this is an error; elsewhere only the "
        "artifact's kind is checked.",
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
        "A step refers to a function that is not defined.",
        "define it in functionDefinitions",
    ),
    (
        "IL209",
        "unknown assessment",
        "error",
        "A step refers to an assessment that is not defined.",
        "define it in assessments",
    ),
    (
        "IL210",
        "unknown template",
        "error",
        "No template has this name.",
        "correct the name",
    ),
    (
        "IL211",
        "template argument missing",
        "error",
        "The template requires an argument that the call does not pass.",
        "add it to args",
    ),
    (
        "IL212",
        "unknown feature",
        "warning",
        "No feature has this name. In a file of our own form this is an error.",
        "correct the name",
    ),
    (
        "IL221",
        "setting not accepted",
        "error",
        "A feature accepts only its own settings, each with one of the listed values.",
        "use a setting and a value that the message lists",
    ),
    (
        "IL222",
        "part of a call without effect",
        "warning",
        "The call, or the routine that it calls, says something that has no effect here. In a file of our "
        "own form this is an error.",
        "say it in the workflow or in the routine's steps, or remove it",
    ),
    (
        "IL223",
        "template calls itself",
        "error",
        "A routine calls itself, directly or through another, so it would never end.",
        "call another template, or use a loop",
    ),
    (
        "IL224",
        "unknown location",
        "warning",
        "An artifact names a location that the workflow's artifactLocations do not have, so an agent is not "
        "told where the file belongs.",
        "correct the name, or add the location",
    ),
    (
        "IL213",
        "unknown reference",
        "warning",
        "No built-in reference has this name. In a file of our own form this is an error.",
        "correct the name",
    ),
    (
        "IL214",
        "unknown option",
        "error",
        "defaultOption is not one of the checkpoint's options.",
        "name one of the options",
    ),
    (
        "IL215",
        "duplicate step id",
        "warning",
        "Two steps have the same id; the later one becomes id#2.",
        "rename one of them",
    ),
    (
        "IL216",
        "activity cannot be borrowed",
        "error",
        "The named activity file does not exist.",
        "correct the reference",
    ),
    (
        "IL217",
        "Markdown file without a step",
        "warning",
        "The Markdown file does not belong to any step of the workflow.",
        "name it after a step",
    ),
    (
        "IL218",
        "unknown workflow",
        "warning",
        "A trigger starts a workflow that no source provides.",
        "correct the id, or add the source that provides the workflow",
    ),
    (
        "IL219",
        "unknown level",
        "warning",
        "A consequence refers to a level that none of its assessments has, so it never applies.",
        "use a level of the assessment",
    ),
    (
        "IL227",
        "invalid decide block",
        "error",
        "The block that says who decides a checkpoint has an unknown key or option, or parts that do "
        "not go together.",
        "correct it as the message says",
    ),
    (
        "IL228",
        "more approvers than entries",
        "warning",
        "More people must agree than the list has entries, so that only a group among them can be enough.",
        "name a group, list more people, or lower atLeast",
    ),
    (
        "IL301",
        "invalid condition",
        "error",
        "The condition has an unknown shape or operator.",
        "write it as shown in the documentation of conditions",
    ),
    (
        "IL302",
        "invalid pattern",
        "error",
        "The regular expression cannot be compiled.",
        "correct the pattern",
    ),
    (
        "IL303",
        "slow pattern",
        "warning",
        "RE2 cannot run this pattern, so a slower engine runs it under a time limit.",
        "avoid look-around and back-references",
    ),
    (
        "IL304",
        "condition that never holds",
        "warning",
        "No run can make this condition, or one of its tests, true: its parts contradict each other, it "
        "compares with a value that no answer sets, or the variable's type has no such comparison. In a file "
        "of our own form this is an error.",
        "correct the condition",
    ),
    (
        "IL305",
        "unbounded loop",
        "error",
        "A loop needs maxIterations, so that it always ends.",
        "add maxIterations (1 to 1000)",
    ),
    (
        "IL306",
        "loop that cannot run",
        "error",
        "The loop lacks a field that says when it runs or ends, or it contains itself.",
        "correct what the message names",
    ),
    (
        "IL307",
        "loop without a stop decision",
        "warning",
        "The loop is controlled by a loop_control decision, but no step in it makes one.",
        "add outputContract wr.contracts.loop_control to the step that decides",
    ),
    (
        "IL308",
        "reference to another document",
        "error",
        "A schema can refer only to parts of itself: nothing is read from other files or hosts.",
        "copy the schema into $defs and refer to it with #/$defs/NAME",
    ),
    (
        "IL401",
        "invalid id",
        "error",
        "The id does not match its pattern.",
        "use lower-case letters, digits and hyphens",
    ),
    (
        "IL402",
        "id without namespace",
        "warning",
        "Ids of step workflows have the form namespace.name; an id without a dot works, but may collide.",
        "rename it as suggested",
    ),
    (
        "IL403",
        "reserved namespace",
        "error",
        "The namespace wr is reserved for the built-in workflows.",
        "mount the folder under another namespace: --workflows NAME=PATH",
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
        "ambiguous id for lookup",
        "warning",
        "The lookup surface shows '.' and '_' as '-', so two ids look the same there.",
        "rename one of them",
    ),
    (
        "IL406",
        "server too old",
        "error",
        "The workflow requires a newer server than this one.",
        "update interlock",
    ),
    (
        "IL407",
        "shadowed workflow",
        "warning",
        "Two sources have a workflow of this id. The user's folder and --workflows outrank the project, the "
        "project outranks git sources and packages, and those outrank the bundled workflows.",
        "rename one of them, unless that is intended",
    ),
    (
        "IL501",
        "unreachable step",
        "warning",
        "Every option of a checkpoint before this step leads to another activity.",
        "let one of the options continue, or remove the step",
    ),
    (
        "IL502",
        "unreachable activity",
        "warning",
        "No transition, decision, option, loop or recognition pattern leads to this activity.",
        "add a transition to it, or remove it",
    ),
    (
        "IL503",
        "options without effect",
        "warning",
        "No option of the checkpoint has an effect, so the answer changes nothing.",
        "give an option an effect",
    ),
    (
        "IL504",
        "transition never taken",
        "warning",
        "An earlier transition is always taken instead.",
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
        "A condition reads a variable that the workflow neither sets nor gives a default.",
        "set it in an option or a step, or give it a default",
    ),
    (
        "IL507",
        "undeclared variable",
        "warning",
        "The workflow declares its variables, but not this one, or nothing declares, sets or mentions it. In "
        "a file of our own form this is an error.",
        "declare it or correct its name",
    ),
    (
        "IL508",
        "checkpoint not bound to a step",
        "warning",
        "No step names this checkpoint, so the compiler decides where it is asked: before what depends on "
        "its answer, else after the step whose text names it, before a step that produces what it sets, at "
        "the end of a loop whose item it shows, or at the end. The message says where and why.",
        "name it in the step that it is asked before: checkpoint: <id>",
    ),
    (
        "IL509",
        "prompt too long",
        "warning",
        "A prompt should have at most 8192 characters.",
        "split the step or move text into a resource",
    ),
    (
        "IL510",
        "expression in a prompt",
        "warning",
        "Prompts replace only variables such as {{a.b}}; this expression stays as it is.",
        "set a variable and use it in the prompt",
    ),
    (
        "IL511",
        "invalid example",
        "error",
        "The example of an output must be valid against its schema.",
        "correct the example or the schema",
    ),
    (
        "IL512",
        "workflow not found",
        "error",
        "No source has a workflow with this id.",
        "see the list of workflows",
    ),
    (
        "IL513",
        "unknown variable in a text",
        "warning",
        "A text shows a variable that nothing declares, sets or mentions, so it is always shown as unset. In "
        "a file of our own form this is an error.",
        "declare it or correct its name",
    ),
    (
        "IL514",
        "value that is not declared",
        "warning",
        "A default, an effect, an action or a condition gives a declared variable a value that its type does "
        "not have or its list of values leaves out, so what depends on it is never as meant. In a file of "
        "our own form this is an error.",
        "correct the value or the declared type",
    ),
    (
        "IL516",
        "set by its text",
        "info",
        "The file was written for another server and does not declare what this step sets, so that is taken "
        "from its text. An agent that does the step may change these variables; nothing requires it.",
        "declare it with sets: [name]; infer: false in interlock.yaml switches this off for a source",
    ),
    (
        "IL517",
        "checkpoint not asked before its step",
        "info",
        "The step that names this checkpoint is the first that sets what its question shows or its condition "
        "reads, so it is asked right after that step; or the settings of the source say where it is asked.",
        "name it in the step that it is asked before, or let an earlier step set the variable",
    ),
    (
        "IL518",
        "unknown place",
        "error",
        "The settings of the source give a place to a checkpoint that the workflow does not list, or a place "
        "that the activity does not have.",
        "write WORKFLOW/ACTIVITY/CHECKPOINT: before STEP, after STEP or end",
    ),
    (
        "IL519",
        "reserved variable",
        "error",
        "The names artifacts and checks are reserved for what a run has handed in and what has judged it. "
        "Nothing would be stored under them.",
        "rename the variable",
    ),
    (
        "IL520",
        "check that cannot run",
        "error",
        "A check has a command that cannot be split into words, a folder or file outside the project, or an "
        "id that another check of the workflow has with another definition.",
        "correct the check, or give it an id of its own",
    ),
    (
        "IL521",
        "shell syntax in a check",
        "warning",
        "Checks are run without a shell: pipes, redirections, variables and lists of commands have no "
        "effect.",
        "put the commands into a script or a make target, and run that",
    ),
    (
        "IL522",
        "unknown check",
        "error",
        "A text shows the result of a check that no step or checkpoint of the workflow has.",
        "correct the name, or declare the check",
    ),
    (
        "IL523",
        "unknown field of an artifact",
        "warning",
        "A text or condition quotes an artifact that no step of the workflow hands in under a contract, or a "
        "field that the contract does not have. It is shown as not handed in.",
        "write artifacts.NAME.FIELD with a field of the contract's schema",
    ),
    (
        "IL601",
        "unknown name in a scenario",
        "error",
        "A scenario names a step, a gate or an option that its workflow does not have.",
        "correct the name",
    ),
)

CODES: dict[str, DiagnosticKind] = {row[0]: DiagnosticKind(*row) for row in _TABLE}
