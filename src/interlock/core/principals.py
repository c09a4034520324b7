"""Who calls. Every session belongs to a principal; a role lets one do more than work on its own sessions."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

Role = Literal["user", "approver", "admin", "metrics"]


class Principal(Struct, frozen=True):
    """A caller by name. A name is an owner of sessions (rule 46)."""

    name: str
    role: Role = "user"

    @property
    def decides(self) -> bool:
        """Whether this principal may decide, for itself and for others: an agent may hold any other token."""
        return self.role in ("approver", "admin")

    @property
    def reads_metrics(self) -> bool:
        """Whether this principal may read what the server has done."""
        return self.role in ("metrics", "admin")

    @property
    def works(self) -> bool:
        """Whether this principal may do anything else: a monitoring system's token may not."""
        return self.role != "metrics"


LOCAL = Principal("local", "admin")  # the user of this machine, who owns what stdio and the CLI make
