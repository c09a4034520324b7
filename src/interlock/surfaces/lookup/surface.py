"""The lookup surface: the tools of its document over a library, stateless, with JSON-RPC errors.

What answers is imported with the first question, so that listing the tools costs next to nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from interlock.surfaces.call import Call, Outcome
from interlock.surfaces.lookup import errors
from interlock.surfaces.lookup.documented import GET, LIST, NEXT, PROMPTS, VALIDATE, VALIDATE_JSON, documented
from interlock.surfaces.lookup.params import Get, Next, Validate, ValidateJson, details
from interlock.surfaces.parameters import NoParams
from interlock.surfaces.tool import Profile, Surface, Tool, tools_of

if TYPE_CHECKING:
    from interlock.authoring.library import Library
    from interlock.surfaces.prompts import Prompts
    from interlock.surfaces.resources import Resources


class LookupSurface(Surface):
    """Lists workflows, shows them, names the next step, and checks outputs."""

    name = "lookup"
    instructions = (
        "List workflows with workflow_list, read one with workflow_get, then call workflow_next with the ids "
        "of all completed steps after every step until isComplete."
    )
    profile: Profile = "lookup"
    prompt_texts = PROMPTS

    def __init__(self, library: Library) -> None:
        self._library = library
        self.tools = tools_of(self)

    def prompts(self) -> Prompts:
        from interlock.surfaces.prompts import Prompts

        return Prompts(self._library, None, PROMPTS)

    def resources(self) -> Resources:
        from interlock.surfaces.resources import Resources

        return Resources(self._library, None)

    def invalid(self, tool: Tool, reason: str) -> Outcome:
        return errors.invalid_params(details(reason))

    def unknown(self, name: str) -> Outcome:
        return errors.method_not_found(name)

    def expected(self, error: Exception) -> Outcome | None:
        return errors.storage_error(error) if isinstance(error, OSError) else None

    def failed(self, tool: Tool, error: Exception, reference: str) -> Outcome:
        return errors.internal_error(error, reference)

    @documented(LIST)
    def workflow_list(self, params: NoParams, call: Call) -> Outcome:
        """Lists all available workflows"""
        from interlock.surfaces.lookup.answers import list_reply

        return list_reply(self._library)

    @documented(GET)
    def workflow_get(self, params: Get, call: Call) -> Outcome:
        """Retrieves a specific workflow by ID"""
        from interlock.surfaces.lookup.answers import get_reply

        return get_reply(self._library, params)

    @documented(NEXT)
    def workflow_next(self, params: Next, call: Call) -> Outcome:
        """Gets the next step guidance based on workflow state"""
        from interlock.surfaces.lookup.answers import next_reply

        return next_reply(self._library, params)

    @documented(VALIDATE)
    def workflow_validate(self, params: Validate, call: Call) -> Outcome:
        """Validates step output against workflow requirements"""
        from interlock.surfaces.lookup.answers import validate_reply

        return validate_reply(self._library, params)

    @documented(VALIDATE_JSON, listed=False)
    def workflow_validate_json(self, params: ValidateJson, call: Call) -> Outcome:
        """Validates the JSON text of a workflow"""
        from interlock.surfaces.lookup.answers import reply
        from interlock.surfaces.lookup.checking import checked

        return reply(checked(params.workflow_json))
