"""The families of workflow files. The engine asks what a family can do, never which one it is."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct


class Dialect(Struct, frozen=True):
    """The family that a workflow's files belong to, and what can be expected of its authors.

    `declares_sets`: steps declare what they set, so that it can be required (rule 31).
    `claims_may_lack_variables`: the server that the files were written for holds no variables, so that an
    agent which says that a step is done may not have sent what it sets; that is a warning (rule 31).
    """

    name: Literal["interlock", "workrail", "workflow-server"]
    declares_sets: bool = False
    claims_may_lack_variables: bool = False


INTERLOCK = Dialect("interlock", declares_sets=True)
WORKRAIL = Dialect("workrail")
WORKFLOW_SERVER = Dialect("workflow-server", claims_may_lack_variables=True)
