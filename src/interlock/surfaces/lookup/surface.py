"""The lookup surface: the tools of its document over a library, stateless, with JSON-RPC errors.

What answers is imported with the first question, so that listing the tools costs next to nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from interlock.surfaces.call import Call, Outcome
from interlock.surfaces.lookup import errors, tools
from interlock.surfaces.lookup.params import Get, Next, Validate, ValidateJson, details
from interlock.surfaces.strict_params import NoParams
from interlock.surfaces.tool import Profile, Surface, Tool

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
    prompt_texts = tools.PROMPTS

    def __init__(self, library: Library) -> None:
        self._library = library
        self.tools: Mapping[str, Tool] = {
            "workflow_list": _tool("workflow_list", tools.LIST, NoParams, self.workflow_list),
            "workflow_get": _tool("workflow_get", tools.get(), Get, self.workflow_get),
            "workflow_next": _tool("workflow_next", tools.NEXT, Next, self.workflow_next),
            "workflow_validate": _tool("workflow_validate", tools.VALIDATE, Validate, self.workflow_validate),
            "workflow_validate_json": _tool(
                "workflow_validate_json",
                tools.VALIDATE_JSON,
                ValidateJson,
                self.workflow_validate_json,
                listed=False,
            ),
        }

    def prompts(self) -> Prompts:
        from interlock.surfaces.prompts import Prompts

        return Prompts(self._library, None, tools.PROMPTS)

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

    def workflow_list(self, _params: NoParams, _call: Call) -> Outcome:
        from interlock.surfaces.lookup.answers import list_reply

        return list_reply(self._library)

    def workflow_get(self, params: Get, _call: Call) -> Outcome:
        from interlock.surfaces.lookup.answers import get_reply

        return get_reply(self._library, params)

    def workflow_next(self, params: Next, _call: Call) -> Outcome:
        from interlock.surfaces.lookup.answers import next_reply

        return next_reply(self._library, params)

    def workflow_validate(self, params: Validate, _call: Call) -> Outcome:
        from interlock.surfaces.lookup.answers import validate_reply

        return validate_reply(self._library, params)

    def workflow_validate_json(self, params: ValidateJson, _call: Call) -> Outcome:
        from interlock.surfaces.lookup.answers import reply
        from interlock.surfaces.lookup.checking import checked

        return reply(checked(params.workflow_json))


def _tool(
    name: str,
    listing: tools.ToolListing,
    params: type[Struct],
    handler: Callable[[Any, Call], Outcome],
    *,
    listed: bool = True,
) -> Tool:
    return Tool(
        name=name,
        description=listing.description,
        params=params,
        handler=handler,
        input_schema=listing.accepts,
        output_schema=listing.returns,
        read_only=True,
        idempotent=True,
        examples=listing.examples,
        listed=listed,
        uses_store=False,
    )
