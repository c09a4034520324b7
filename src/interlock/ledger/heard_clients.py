"""Which clients have called, and when each was last heard: one small setting per owner, not part of the log.

A process writes it while it is idle, at most once a minute for each client, so a time is right to a minute.
"""

from __future__ import annotations

import msgspec

from interlock.ledger.queries.status import Shown
from interlock.store.protocol import Reader, SettingRow, Store

KEY = "clients"
WRITTEN_EVERY = 60_000
MOST_CLIENTS = 50
LONGEST_NAME = 64


class HeardClient(Shown, frozen=True):
    """A client as it names itself, the surface that it called, and when."""

    owner: str
    name: str
    version: str
    surface: str
    at: int = 0


class HeardClients:
    """The clients that have called this process and are not written down yet."""

    def __init__(self) -> None:
        self.calling: set[HeardClient] = set()
        self._written: dict[HeardClient, int] = {}

    def write(self, store: Store, now: int) -> None:
        """Write down whoever has called, unless that was done less than a minute ago."""
        recent = {client: at for client, at in self._written.items() if abs(now - at) < WRITTEN_EVERY}
        due = [client for client in self.calling.copy() if client not in recent]
        for owner in {client.owner for client in due}:
            heard = [client for client in due if client.owner == owner]
            with store.writing() as writer:
                known = {identity(client): client for client in clients_of(writer, owner)}
                for client in heard:
                    newest = msgspec.structs.replace(
                        client, name=client.name[:LONGEST_NAME], version=client.version[:LONGEST_NAME], at=now
                    )
                    known[identity(newest)] = newest
                kept = sorted(known.values(), key=lambda client: -client.at)[:MOST_CLIENTS]
                writer.set_setting(SettingRow(owner, KEY, msgspec.json.encode(kept).decode()))
        self._written = {**recent, **dict.fromkeys(due, now)}
        self.calling.difference_update(due)


def identity(client: HeardClient) -> tuple[str, str, str]:
    return client.name, client.version, client.surface


def clients_of(reader: Reader, owner: str) -> list[HeardClient]:
    """Return the clients of an owner, the one that was heard last first."""
    stored = reader.setting(owner, KEY)
    return msgspec.json.decode(stored, type=list[HeardClient]) if stored else []


def everyones_clients(reader: Reader) -> list[HeardClient]:
    """Return the clients of all owners."""
    owners = [row.owner for row in reader.settings() if row.key == KEY]
    return sorted((each for owner in owners for each in clients_of(reader, owner)), key=lambda each: -each.at)
