"""The list of workflows is narrowed by words, tags and source, on every surface that has it."""

from __future__ import annotations

import re
from typing import Any

import pytest

from interlock.surfaces.call import Call, Reply
from interlock.surfaces.tool import call_tool
from support.harness import Bench, steps, workflow
from support.text_agents import AGENTS

on_every_surface = pytest.mark.parametrize("surface", AGENTS)


def listed(bench: Bench, surface: str, **arguments: Any) -> str:
    reply = call_tool(AGENTS[surface][1](bench.ledger()), "list_workflows", arguments, Call())
    assert isinstance(reply, Reply)
    return reply.text


def ids(text: str) -> list[str]:
    return list(dict.fromkeys(re.findall(r"\b(?:wr|team)\.[a-z_]+|\bwork-packages?\b", text)))


@pytest.fixture(autouse=True)
def own(bench: Bench) -> None:
    own = workflow(*steps("one"), id="team.hotfix", name="Hotfix", description="A release in a hurry.")
    bench.write({**own, "tags": ["release", "urgent"]})


@on_every_surface
def test_words_find_a_workflow_by_id_and_title_before_its_description(bench: Bench, surface: str) -> None:
    assert ids(listed(bench, surface, find="please find a release workflow"))[:2] == [
        "wr.release",
        "team.hotfix",
    ]


@on_every_surface
def test_an_id_comes_first(bench: Bench, surface: str) -> None:
    assert ids(listed(bench, surface, find="team.hotfix"))[0] == "team.hotfix"


@on_every_surface
def test_some_of_the_words_are_enough_where_no_workflow_has_all(bench: Bench, surface: str) -> None:
    assert "wr.release" in ids(listed(bench, surface, find="release the walrus"))


@on_every_surface
def test_tags_and_source_narrow_the_list(bench: Bench, surface: str) -> None:
    assert ids(listed(bench, surface, tags=["Release", "urgent"])) == ["team.hotfix"]
    assert "team.hotfix" not in ids(listed(bench, surface, source="bundled"))
    assert ids(listed(bench, surface, source="team")) == ["team.hotfix"]


@on_every_surface
def test_nothing_that_matches_is_said_with_what_to_do(bench: Bench, surface: str) -> None:
    text = listed(bench, surface, find="walrus")
    assert "No workflow matches. Call list_workflows with fewer words" in text
    assert ids(text) == []


@on_every_surface
def test_without_arguments_everything_is_listed(bench: Bench, surface: str) -> None:
    assert {"team.hotfix", "wr.release", "wr.feature"} <= set(ids(listed(bench, surface)))
