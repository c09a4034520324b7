"""What a client wants to hear of, in both eras: resources by their URI, and lists that can change.

Nothing is pushed. Who holds a subscription looks once a second whether what it follows has a new version, so
it makes no difference which process or replica made the change.
"""

from __future__ import annotations

from _thread import allocate_lock  # `threading` would slow down a stdio server
from collections.abc import Collection, Mapping
from typing import Literal, TypeAlias

from msgspec import Struct

from interlock.core.values import Json
from interlock.surfaces.resources import ALL_WORKFLOWS, Topic
from interlock.surfaces.tool import Surface, report_exception
from interlock.transport.results import PREFIX, JsonObject, invalid_params, resource_not_found
from interlock.transport.rpc import notification_line

ListName = Literal["prompts", "resources"]
Versions: TypeAlias = Mapping[Topic, str | None]

SUBSCRIPTION_ID = PREFIX + "subscriptionId"
MOST_RESOURCES = 1000
LISTS: Mapping[str, ListName] = {"promptsListChanged": "prompts", "resourcesListChanged": "resources"}


class Changed(Struct, frozen=True):
    """Something that a client hears of: a list has changed, or the resource with this URI."""

    what: ListName | Literal["resource"]
    uri: str = ""

    @property
    def method(self) -> str:
        kind = "resources/updated" if self.what == "resource" else f"{self.what}/list_changed"
        return f"notifications/{kind}"

    def params(self, meta: Mapping[str, Json]) -> JsonObject:
        uri = {"uri": self.uri} if self.uri else {}
        return uri | ({"_meta": meta} if meta else {})


class Followed(Struct, frozen=True):
    """What somebody follows, and the version that they know."""

    topic: Topic
    known: str | None


class Subscription:
    """What one client follows. Worker threads may add and remove while its changes are read."""

    def __init__(self, surface: Surface) -> None:
        self.surface = surface
        self._lock = allocate_lock()
        self._followed: dict[Changed, Followed] = {}

    def follow(self, uri: str) -> bool:
        """Follow a resource from now on; False if there is no such resource for the caller."""
        topic = self.surface.resources().topic_of(uri)
        if topic is None:
            return False
        self._add(Changed("resource", uri), topic)
        return True

    def follow_list(self, name: ListName) -> None:
        """Follow a list from now on; both lists follow from the workflows."""
        self._add(Changed(name), ALL_WORKFLOWS)

    def _add(self, change: Changed, topic: Topic) -> None:
        followed = Followed(topic, self.surface.resources().versions([topic])[topic])
        with self._lock:
            self._followed[change] = followed

    def unfollow(self, uri: str) -> None:
        """Follow a resource no longer."""
        with self._lock:
            self._followed.pop(Changed("resource", uri), None)

    def is_full(self) -> bool:
        """Tell whether no further resource can be followed."""
        return len(self._followed) >= MOST_RESOURCES

    def topics(self) -> set[Topic]:
        """Return what has to be looked at."""
        with self._lock:
            return {followed.topic for followed in self._followed.values()}

    def changes(self, versions: Versions) -> list[Changed]:
        """Return what has another version than the client knows; from now on it knows these."""
        with self._lock:
            changed = {
                change: Followed(followed.topic, versions[followed.topic])
                for change, followed in self._followed.items()
                if versions.get(followed.topic, followed.known) != followed.known
            }
            self._followed |= changed
        return list(changed)


def versions_now(surface: Surface, topics: Collection[Topic]) -> Versions:
    """Return today's versions; none if they cannot be read now, because the next look finds a change too."""
    try:
        return surface.resources().versions(topics)
    except Exception as error:  # nobody waits for this answer, and the server goes on
        if surface.expected(error) is None:
            report_exception("looking for changes", error)
        return {}


def listen(surface: Surface, wanted: Json) -> tuple[Subscription, JsonObject]:
    """Return the subscription that a modern client asks for, and what of it is granted.

    Tools never change, and without prompts and resources nothing does.
    """
    if not isinstance(wanted, Mapping):
        raise invalid_params("notifications must be an object")
    subscription, granted = Subscription(surface), dict[str, Json]()
    if surface.prompt_texts is None:
        return subscription, granted
    for field, name in LISTS.items():
        if wanted.get(field) is True:
            subscription.follow_list(name)
            granted[field] = True
    uris = wanted.get("resourceSubscriptions") or []
    if not isinstance(uris, list) or len(uris) > MOST_RESOURCES:
        raise invalid_params(f"resourceSubscriptions must be a list of at most {MOST_RESOURCES} URIs")
    for uri in uris:
        if not (isinstance(uri, str) and subscription.follow(uri)):
            raise resource_not_found(str(uri), "modern")
    if uris:
        granted["resourceSubscriptions"] = uris
    return subscription, granted


def changed_lines(subscription: Subscription, meta: Mapping[str, Json]) -> list[bytes]:
    """Look for changes now and return the lines that tell of them over a pipe."""
    versions = versions_now(subscription.surface, subscription.topics())
    return [
        notification_line(change.method, change.params(meta)) for change in subscription.changes(versions)
    ]
