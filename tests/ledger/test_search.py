"""Finding work again (rule 47): the tiers in their order, and the order within a tier."""

from __future__ import annotations

from pathlib import Path

import pytest

from interlock.ledger.queries.indexing import catch_up
from interlock.ledger.queries.search import CANDIDATES
from support.harness import Agent, Bench, gate, steps, workflow

SHA = "0123456789abcdef0123456789abcdef01234567"


def checkout(folder: Path, branch: str = "main", sha: str = SHA) -> Path:
    """A git checkout, as far as it is looked at."""
    git = folder / ".git"
    (git / "refs" / "heads" / branch).parent.mkdir(parents=True, exist_ok=True)
    (git / "HEAD").write_text(f"ref: refs/heads/{branch}\n")
    (git / "refs" / "heads" / branch).write_text(sha + "\n")
    return folder


@pytest.fixture
def flow(bench: Bench) -> Bench:
    bench.write(workflow(*steps("one", "two"), tags=["plumbing"]))
    bench.write(workflow(*steps("one", "two"), id="test.other", name="Something Else"))
    return bench


def began(bench: Bench, goal: str, workflow_id: str = "test.flow", *, at: Path | None = None) -> Agent:
    """A run that began a minute after the one before."""
    bench.clock.pass_seconds(60)
    agent = bench.agent(project=at)
    agent.start(workflow_id, goal=goal)
    return agent


def id_of(agent: Agent) -> str:
    session: str = agent.last["session"]["sessionId"]
    return session


def found(bench: Bench, query: str, at: Path | None = None) -> list[tuple[str, str]]:
    answer = bench.agent(project=at).call("resume_session", query=query)
    return [(candidate["sessionId"], candidate["whyMatched"]) for candidate in answer["candidates"]]


def test_the_tiers_come_in_their_order(flow: Bench, tmp_path: Path) -> None:
    deep = began(flow, "nothing of the kind")
    deep.ack("the deadbee word, early on")
    deep.ack("something newer")
    prefix = began(flow, "on a branch that begins so", at=checkout(tmp_path / "p", "deadbee/more"))
    branch = began(flow, "on the branch itself", at=checkout(tmp_path / "b", "deadbee"))
    head = began(flow, "at the commit", at=checkout(tmp_path / "h", "x", "deadbee" + "0" * 33))
    flow.write(workflow(*steps("one"), id="test.deadbee", name="Named so"))
    named = began(flow, "by its workflow", "test.deadbee")
    words = began(flow, "deadbee in the goal")
    noted = began(flow, "in its newest notes")
    noted.ack("deadbee it is")
    assert found(flow, "deadbee") == [
        (id_of(words), "matched_title"),
        (id_of(head), "matched_head_sha"),
        (id_of(branch), "matched_branch"),
        (id_of(named), "matched_workflow"),
        (id_of(noted), "matched_notes"),
    ]
    assert (id_of(prefix), "matched_branch") in found(flow, "deadbee/")
    assert (id_of(deep), "matched_deep") in found(flow, "early deadbee")


def test_an_exact_id_comes_before_everything(flow: Bench) -> None:
    target = began(flow, "the one meant")
    began(flow, f"mentions {id_of(target)} in its goal")
    assert found(flow, id_of(target))[0] == (id_of(target), "matched_exact_id")
    run = target.last["session"]["runId"]
    assert found(flow, run)[0] == (id_of(target), "matched_exact_id")


def test_a_run_id_leads_to_that_run_of_a_session_with_several(flow: Bench) -> None:
    agent = flow.agent()
    token = agent.call("start_session", title="Two runs")["sessionToken"]
    first = agent.call("start_workflow", workflowId="test.flow", sessionToken=token)
    agent.call("start_workflow", workflowId="test.other", sessionToken=token)
    run = first["session"]["runId"]
    answer = agent.call("resume_session", resumeRef=run)["candidates"][0]
    assert answer["runId"] == run
    assert agent.look(answer)["workflow"]["id"] == "test.flow"


class TestSessionsWithSeveralRuns:
    """A session of execution holds many runs (rule 42); each is found by its own words."""

    @pytest.fixture
    def token(self, flow: Bench) -> str:
        token: str = flow.agent().call("start_session", title="House")["sessionToken"]
        return token

    def run(self, flow: Bench, token: str, goal: str, *notes: str, workflow_id: str = "test.flow") -> str:
        """Begin a run in the session, take a step for each note, and return the run's id."""
        flow.clock.pass_seconds(60)
        agent = flow.agent()
        agent.call("start_workflow", workflowId=workflow_id, sessionToken=token, context={"goal": goal})
        for note in notes:
            agent.ack(note)
        run: str = agent.last["session"]["runId"]
        return run

    def matches(self, flow: Bench, query: str) -> list[tuple[str, str]]:
        answer = flow.agent().call("resume_session", query=query)
        return [(candidate["runId"], candidate["whyMatched"]) for candidate in answer["candidates"]]

    def test_an_older_run_is_found_by_its_own_words(self, flow: Bench, token: str) -> None:
        boiler = self.run(flow, token, "mend the boiler", "new gasket fitted")
        fence = self.run(flow, token, "paint the fence")
        assert self.matches(flow, "boiler") == [(boiler, "matched_title")]
        assert self.matches(flow, "gasket") == [(boiler, "matched_notes")]
        assert self.matches(flow, "fence") == [(fence, "matched_title")]
        assert self.matches(flow, "boiler fence")[0][1] == "matched_some_words", "no run has both words"

    def test_the_running_run_comes_before_the_finished_one(self, flow: Bench, token: str) -> None:
        running = self.run(flow, token, "the roof")
        done = self.run(flow, token, "the house roof", "house tiles", "house done")
        assert self.matches(flow, "house")[:2] == [(running, "matched_title"), (done, "matched_title")]
        assert [run for run, _ in self.matches(flow, "")][:2] == [running, done]

    def test_a_run_is_found_by_its_workflow(self, flow: Bench, token: str) -> None:
        self.run(flow, token, "a")
        other = self.run(flow, token, "b", workflow_id="test.other")
        assert self.matches(flow, "something else") == [(other, "matched_workflow")]


def test_a_title_comes_before_notes_and_running_before_finished_in_each(flow: Bench) -> None:
    done = began(flow, "the stove")
    done.ack()
    done.ack()
    titled = began(flow, "the stove")
    noted = began(flow, "something else")
    noted.ack("bought a stove")
    order = [
        (id_of(titled), "matched_title"),
        (id_of(done), "matched_title"),
        (id_of(noted), "matched_notes"),
    ]
    assert found(flow, "stove") == order


def test_all_words_must_be_there_spread_over_goal_and_notes(flow: Bench) -> None:
    both = began(flow, "mend the boiler")
    both.ack("new gasket fitted")
    began(flow, "mend the fence")
    assert found(flow, "gasket boiler")[0] == (id_of(both), "matched_notes")
    assert [why for _, why in found(flow, "gasket fence")] == ["matched_some_words"] * 2


def test_a_goal_is_found_beside_a_title(flow: Bench) -> None:
    agent = flow.agent()
    agent.start("test.flow", title="Short", goal="replace the thermostat")
    assert found(flow, "thermostat")[0] == (id_of(agent), "matched_title")
    agent.ack("went on")
    assert found(flow, "thermostat")[0] == (id_of(agent), "matched_title")


def test_previews_of_the_newest_artifacts_count_as_notes(flow: Bench) -> None:
    agent = began(flow, "artifacts")
    agent.ack("see below", artifacts=[{"kind": "x", "finding": "a loose valve"}])
    assert found(flow, "valve")[0] == (id_of(agent), "matched_notes")


def test_workflows_are_found_by_id_name_and_tag(flow: Bench) -> None:
    one, other = began(flow, "a"), began(flow, "b", "test.other")
    assert found(flow, "plumbing")[0] == (id_of(one), "matched_workflow")
    assert found(flow, "something else")[0] == (id_of(other), "matched_workflow")
    assert found(flow, "test.other")[0] == (id_of(other), "matched_workflow")


def test_branches_keep_their_case_and_slashes(flow: Bench, tmp_path: Path) -> None:
    one = began(flow, "a", at=checkout(tmp_path / "a", "Feature/Log-In"))
    assert (id_of(one), "matched_branch") in found(flow, "Feature/Log-In")
    assert (id_of(one), "matched_branch") in found(flow, "Feature/")


def test_without_words_todays_checkout_decides_then_recency(flow: Bench, tmp_path: Path) -> None:
    here = checkout(tmp_path / "here", "topic")
    same = began(flow, "same commit", at=here)
    other = began(flow, "elsewhere")
    assert found(flow, "", here) == [(id_of(same), "matched_head_sha"), (id_of(other), "recency_fallback")]
    checkout(here, "topic", "f" * 40)
    assert found(flow, "", here)[0] == (id_of(same), "matched_branch")


def test_within_a_tier_same_repository_then_unfinished_then_newest(flow: Bench, tmp_path: Path) -> None:
    here, there = checkout(tmp_path / "here"), checkout(tmp_path / "there")
    near = began(flow, "shared words", at=here)
    old = began(flow, "shared words", at=there)
    new = began(flow, "shared words", at=there)
    done = began(flow, "shared words", at=there)
    done.ack()
    done.ack()
    assert done.last["isComplete"]
    order = [session for session, _ in found(flow, "shared words", here)]
    assert order == [id_of(near), id_of(new), id_of(old), id_of(done)]


def test_five_candidates_each_session_once_the_same_every_time(flow: Bench) -> None:
    for number in range(8):
        began(flow, f"common words {number}")
    first = found(flow, "common words")
    assert len({session for session, _ in first}) == len(first) == CANDIDATES
    assert found(flow, "common words") == first


def test_an_old_session_is_found_behind_any_number_of_newer_ones(flow: Bench) -> None:
    old = began(flow, "a needle from long ago")
    agent = flow.agent()
    for number in range(250):
        agent.start("test.flow", goal=f"hay {number}")
    catch_up(agent.ledger.store, agent.ledger.pins)
    assert found(flow, "needle")[0] == (id_of(old), "matched_title")


def test_a_damaged_session_is_passed_over(flow: Bench) -> None:
    whole, damaged = began(flow, "same words"), began(flow, "same words")
    with damaged.ledger.store.writing() as writer:
        writer.set_health(id_of(damaged), "corrupt_tail", "")
    assert [session for session, _ in found(flow, "same words")] == [id_of(whole)]


def test_another_owner_sees_nothing_of_it(flow: Bench) -> None:
    began(flow, "private words")
    answer = flow.agent(owner="somebody else").call("resume_session", query="private words")
    assert answer["candidates"] == []


@pytest.mark.parametrize(
    "query", ['"', "a OR b", "NEAR(", "title:x", "*", "\u202e", "'; DROP TABLE sessions"]
)
def test_no_query_is_syntax(flow: Bench, query: str) -> None:
    began(flow, "harmless")
    assert "candidates" in flow.agent().call("resume_session", query=query)


@pytest.mark.parametrize(
    ("goal", "query"),
    [
        ("Die Straße fegen", "STRAßE"),
        ("Open the ﬁle", "file"),
        ("Ｗｉｄｅ", "wide"),
        ("Café", "cafe"),
    ],
)
def test_words_are_found_in_whatever_form_they_are_written(flow: Bench, goal: str, query: str) -> None:
    agent = began(flow, goal)
    assert found(flow, query) == [(id_of(agent), "matched_title")]


def test_a_candidate_shows_its_newest_note(flow: Bench) -> None:
    flow.write(workflow(gate("which", "left", "right"), id="test.gate"))
    agent = began(flow, "snippets", "test.gate")
    started = agent.last
    tokens = {name: started[name] for name in ("stateToken", "checkpointToken")}
    agent.call("checkpoint_workflow", **tokens, output={"notesMarkdown": "saved first"})
    assert agent.ack("tried later", at=started)["kind"] == "blocked"
    answer = flow.agent().call("resume_session", query="snippets")
    assert answer["candidates"][0]["snippet"] == "tried later"


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE commits SET body = x'00ff' WHERE session_id = ?",
        "UPDATE commits SET body = 'text' WHERE session_id = ?",
        "UPDATE nodes SET state = x'7b' WHERE session_id = ?",
        "UPDATE nodes SET state = 7 WHERE session_id = ?",
        "UPDATE nodes SET outputs = x'7b' WHERE session_id = ?",
        "DELETE FROM handles WHERE session_id = ?",
    ],
)
def test_a_session_that_cannot_be_indexed_keeps_no_other_from_being_found(flow: Bench, damage: str) -> None:
    broken, whole = began(flow, "broken words"), began(flow, "whole words")
    connection = broken.ledger.store._connection  # type: ignore[attr-defined]
    connection.execute("DROP TRIGGER commits_stay")
    connection.execute(damage, (id_of(broken),))
    assert id_of(whole) in [session for session, _ in found(flow, "words")]
    assert found(flow, "whole")[0] == (id_of(whole), "matched_title")
