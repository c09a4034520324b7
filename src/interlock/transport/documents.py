"""Prompts and resources as MCP lists and reads them, for both transports."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from interlock.surfaces.call import Era, RpcError
from interlock.surfaces.tool import Surface
from interlock.transport.results import (
    JsonObject,
    invalid_params,
    method_not_found,
    refused_cursor,
    resource_not_found,
)
from interlock.transport.rpc import Params

if TYPE_CHECKING:
    from interlock.transport.subscriptions import Subscription


def document_result(
    surface: Surface, method: str, params: Params, era: Era, subscription: Subscription | None = None
) -> JsonObject | RpcError:
    """Answer a request for prompts, resources or completions, on a surface that has them.

    A connection of the handshake era has a subscription. Who has read a list hears when it changes.
    """
    if method.endswith("/list") and (refused := refused_cursor(params)):
        return refused
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
            return {
                "resources": [
                    {
                        "uri": line.uri,
                        "name": line.name,
                        "description": line.description,
                        "mimeType": line.media_type,
                    }
                    for line in surface.resources().all()
                ]
            }
        case "resources/templates/list":
            return {
                "resourceTemplates": [
                    {
                        "uriTemplate": template.uri,
                        "name": template.name,
                        "description": template.description,
                        "mimeType": template.media_type,
                    }
                    for template in surface.resources().templates()
                ]
            }
        case "resources/read":
            return resource_contents(surface, params, era)
        case "completion/complete":
            return completed(surface, params)
        case _:
            return method_not_found(method)


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


def prompt_messages(surface: Surface, params: Params) -> JsonObject | RpcError:
    """Return what a prompt says, as a message of the user."""
    name, arguments = params.get("name"), params.get("arguments") or {}
    if not isinstance(name, str):
        return invalid_params("name must be a string")
    if not isinstance(arguments, Mapping):
        return invalid_params("arguments must be an object")
    given = {key: value for key, value in arguments.items() if isinstance(value, str) and "\0" not in value}
    if len(given) < len(arguments):
        return invalid_params("arguments must be strings without NUL")
    text = surface.prompts().text(name, given)
    if text is None:
        return invalid_params("there is no such prompt; see prompts/list")
    return {"messages": [{"role": "user", "content": {"type": "text", "text": text}}]}


def resource_contents(surface: Surface, params: Params, era: Era) -> JsonObject | RpcError:
    """Return the content of a resource."""
    uri = params.get("uri")
    if not isinstance(uri, str):
        return invalid_params("uri must be a string")
    content = surface.resources().read(uri)
    return (
        {"contents": [{"uri": content.uri, "mimeType": content.media_type, "text": content.text}]}
        if content is not None
        else resource_not_found(uri, era)
    )


def subscribed(subscription: Subscription, params: Params) -> JsonObject | RpcError:
    """Follow a resource for a client of the handshake era."""
    uri = params.get("uri")
    if not isinstance(uri, str):
        return invalid_params("uri must be a string")
    if subscription.is_full():
        return invalid_params("too many subscriptions; unsubscribe from what is no longer needed")
    return {} if subscription.follow(uri) else resource_not_found(uri, "handshake")


def completed(surface: Surface, params: Params) -> JsonObject | RpcError:
    """Return the values that an argument may go on with."""
    match params.get("ref"), params.get("argument"):
        case {"type": "ref/prompt", "name": str(name)}, {"name": str(argument), "value": str(beginning)}:
            values = surface.prompts().completions(name, argument, beginning)
        case {"type": "ref/resource", "uri": str(uri)}, {"name": str(argument), "value": str(beginning)}:
            values = surface.resources().completions(uri, argument, beginning)
        case _:
            return invalid_params("ref names a prompt or a resource template, argument a name and a value")
    return {"completion": {"values": values, "total": len(values), "hasMore": False}}
