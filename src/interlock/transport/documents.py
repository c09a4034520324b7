"""Prompts and resources as MCP lists and reads them, for both transports."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from interlock.surfaces.call import Era
from interlock.surfaces.resources import ResourceLine, Template
from interlock.surfaces.tool import Surface
from interlock.transport.results import (
    JsonObject,
    invalid_params,
    refuse_cursor,
    resource_not_found,
    text_param,
    unknown_method,
)
from interlock.transport.rpc import Params

if TYPE_CHECKING:
    from interlock.transport.subscriptions import Subscription


def document_result(
    surface: Surface, method: str, params: Params, era: Era, subscription: Subscription | None = None
) -> JsonObject:
    """Answer a request for prompts, resources or completions, on a surface that has them.

    A connection of the handshake era has a subscription. Who has read a list hears when it changes.
    """
    if method.endswith("/list"):
        refuse_cursor(params)
    if subscription is not None and method in ("prompts/list", "resources/list"):
        subscription.follow_list("prompts" if method == "prompts/list" else "resources")
    match method:
        case "resources/subscribe" if subscription is not None:
            return subscribed(subscription, params)
        case "resources/unsubscribe" if subscription is not None:
            subscription.unfollow(str(params.get("uri")))
            return {}
        case "prompts/list":
            return {"prompts": listed_prompts(surface)}
        case "prompts/get":
            return prompt_messages(surface, params)
        case "resources/list":
            return {"resources": [listed_resource("uri", line) for line in surface.resources().all()]}
        case "resources/templates/list":
            templates = surface.resources().templates()
            return {"resourceTemplates": [listed_resource("uriTemplate", each) for each in templates]}
        case "resources/read":
            return resource_contents(surface, params, era)
        case "completion/complete":
            return completion_result(surface, params)
        case _:
            raise unknown_method(method)


def listed_resource(address: str, listed: ResourceLine | Template) -> JsonObject:
    """Return a resource or a template as it is listed; `address` names the field of its URI."""
    return {
        address: listed.uri,
        "name": listed.name,
        "description": listed.description,
        "mimeType": listed.media_type,
    }


def listed_prompts(surface: Surface) -> list[JsonObject]:
    """Return the prompts of a surface as they are listed."""
    return [
        {
            "name": prompt.name,
            "title": prompt.title,
            "description": prompt.description,
            "arguments": [
                {
                    "name": argument.name,
                    "description": argument.description or argument.name,
                    "required": argument.required,
                }
                for argument in prompt.arguments
            ],
        }
        for prompt in surface.prompts().all()
    ]


def prompt_messages(surface: Surface, params: Params) -> JsonObject:
    """Return what a prompt says, as a message of the user."""
    name, arguments = text_param(params, "name"), params.get("arguments") or {}
    if not isinstance(arguments, Mapping):
        raise invalid_params("arguments must be an object")
    given = {key: value for key, value in arguments.items() if isinstance(value, str) and "\0" not in value}
    if len(given) < len(arguments):
        raise invalid_params("arguments must be strings without NUL")
    text = surface.prompts().text(name, given)
    if text is None:
        raise invalid_params("there is no such prompt; see prompts/list")
    return {"messages": [{"role": "user", "content": {"type": "text", "text": text}}]}


def resource_contents(surface: Surface, params: Params, era: Era) -> JsonObject:
    """Return the content of a resource."""
    uri = text_param(params, "uri")
    content = surface.resources().read(uri)
    if content is None:
        raise resource_not_found(uri, era)
    return {"contents": [{"uri": content.uri, "mimeType": content.media_type, "text": content.text}]}


def subscribed(subscription: Subscription, params: Params) -> JsonObject:
    """Follow a resource for a client of the handshake era."""
    uri = text_param(params, "uri")
    if subscription.is_full():
        raise invalid_params("too many subscriptions; unsubscribe from what is no longer needed")
    if not subscription.follow(uri):
        raise resource_not_found(uri, "handshake")
    return {}


def completion_result(surface: Surface, params: Params) -> JsonObject:
    """Return the values that an argument may go on with."""
    match params.get("ref"), params.get("argument"):
        case {"type": "ref/prompt", "name": str(name)}, {"name": str(argument), "value": str(beginning)}:
            values = surface.prompts().completions(name, argument, beginning)
        case {"type": "ref/resource", "uri": str(uri)}, {"name": str(argument), "value": str(beginning)}:
            values = surface.resources().completions(uri, argument, beginning)
        case _:
            raise invalid_params("ref names a prompt or a resource template, argument a name and a value")
    return {"completion": {"values": values, "total": len(values), "hasMore": False}}
