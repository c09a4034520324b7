"""Sources, precedence, names, hot reload and the compile cache."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from interlock.authoring.library import BUNDLED, Diagnostic, Library, Loaded, Source
from interlock.authoring.sources.discovery import clones, plugins
from support.authored import ASK, head, library, write
from support.threads import together


def put(folder: Path, file: str, /, **fields: object) -> None:
    write(folder, {file: json.dumps(head(ASK, **fields))})  # type: ignore[arg-type]


def ids(one: Library) -> list[str]:
    return [entry.id for entry in one.listing().entries]


RANKED = ["bundled", "plugin", "git", "project", "user", "configured"]


@pytest.mark.parametrize(("outranked", "winning"), list(pairwise(RANKED)))
def test_what_the_user_chose_outranks_what_others_wrote(tmp_path: Path, outranked: Any, winning: Any) -> None:
    """Rule 38a."""
    for kind in (outranked, winning):
        put(tmp_path / kind, f"{kind}.json", name=kind)
    sources = [Source(winning, tmp_path / winning), Source(outranked, tmp_path / outranked)]
    listing = Library(sources).listing()
    assert [(entry.name, entry.source) for entry in listing.entries] == [(winning, winning)]
    (shadowed,) = listing.shadowed
    assert (shadowed.workflow_id, shadowed.file, shadowed.by_file) == (
        "t.w",
        f"{outranked}.json",
        f"{winning}.json",
    )
    assert (outranked in shadowed.source, winning in shadowed.by_source) == (True, True)
    assert str(tmp_path) not in shadowed.message


def test_sources_of_one_kind_are_told_apart(tmp_path: Path) -> None:
    for name in ("one", "two"):
        put(tmp_path / name, "w.json", name=name)
    listing = Library([Source("git", tmp_path / name, name) for name in ("one", "two")]).listing()
    (shadowed,) = listing.shadowed
    assert (shadowed.source, shadowed.by_source) == ("git one", "git two")


BROKEN = {
    "without steps": json.dumps(head(steps=[])),
    "not JSON": '{"id": "t.w", "name": "W", "steps": [',
    "not JSON, on lines": '{\n  "name": "W",\n  "id": "t.w",\n  "steps": [\n',
    "not YAML": "name: W\nid: t.w\nsteps: [}\n",
    "of another type": '{"id": "t.w", "steps": 7}',
    "too new": json.dumps(head(minServerVersion="99.0.0")),
}


@pytest.mark.parametrize("text", BROKEN.values(), ids=BROKEN)
@pytest.mark.parametrize("lower", ["bundled", "plugin", "git", "project"])
def test_a_broken_file_still_owns_its_id(tmp_path: Path, lower: Any, text: str) -> None:
    """Rule 38a: nothing of another source takes its place."""
    put(tmp_path / "lower", "w.json", name="Another")
    suffix = "yaml" if text.startswith("name") else "json"
    write(tmp_path / "user", {f"own.{suffix}": text})
    one = Library([Source(lower, tmp_path / "lower"), Source("user", tmp_path / "user")])
    assert ids(one) == []
    error = one.load("t.w")
    assert isinstance(error, Diagnostic)
    assert (error.file, error.severity) == (f"own.{suffix}", "error")
    assert [(hidden.file, hidden.by_file) for hidden in one.listing().shadowed] == [
        ("w.json", f"own.{suffix}")
    ]


def test_a_broken_file_without_an_id_hides_nothing(tmp_path: Path) -> None:
    put(tmp_path / "git", "w.json", id="notes")
    write(tmp_path / "user", {"notes.json": "{"})
    one = Library([Source("git", tmp_path / "git"), Source("user", tmp_path / "user")])
    assert ids(one) == ["notes"]
    assert one.listing().shadowed == ()


def test_a_broken_mounted_file_owns_the_id_it_has_there(tmp_path: Path) -> None:
    put(tmp_path, "w.json", id="wr.feature", steps=[])
    one = Library([BUNDLED, Source("configured", tmp_path, "acme")])
    assert isinstance(one.load("wr.feature"), Loaded)
    for name in ("acme.feature", "w", "feature"):
        error = one.load(name)
        assert isinstance(error, Diagnostic)
        assert (error.code, error.file) == ("IL106", "w.json")


def test_the_first_of_two_files_owns_the_id_even_when_it_is_broken(tmp_path: Path) -> None:
    put(tmp_path, "a.json", steps=[])
    put(tmp_path, "b.json")
    one = library(tmp_path)
    assert ids(one) == []
    assert {diagnostic.code for diagnostic in one.listing().diagnostics} == {"IL106", "IL404"}


def test_a_known_but_broken_workflow_says_why(tmp_path: Path) -> None:
    put(tmp_path, "w.json", steps=[])
    found = library(tmp_path).load("t.w")
    assert isinstance(found, Diagnostic)
    assert (found.code, found.file, found.workflow_id) == ("IL106", "w.json", "t.w")


def test_an_unknown_workflow_suggests_its_neighbours(tmp_path: Path) -> None:
    put(tmp_path, "w.json", id="team.review")
    found = library(tmp_path).load("team.reveiw")
    assert isinstance(found, Diagnostic)
    assert (found.code, found.suggestions) == ("IL512", ("team.review",))


def test_the_list_goes_by_namespace_kind_and_name(tmp_path: Path) -> None:
    put(tmp_path, "1.json", id="b.one", name="Zebra")
    put(tmp_path, "2.json", id="b.two", name="Ant")
    put(tmp_path, "3.json", id="b.routine-x", name="Aa")
    put(tmp_path, "4.json", id="a.one", name="Zz")
    assert ids(library(tmp_path)) == ["a.one", "b.two", "b.one", "b.routine-x"]


def test_wr_is_reserved_for_the_bundled(tmp_path: Path) -> None:
    """Rule 38."""
    put(tmp_path, "w.json", id="wr.feature")
    listing = Library([BUNDLED, Source("project", tmp_path)]).listing()
    assert [entry.source for entry in listing.entries if entry.id == "wr.feature"] == ["bundled"]
    (found,) = [diagnostic for diagnostic in listing.diagnostics if diagnostic.code == "IL403"]
    assert "NAME=PATH" in found.next_action


@pytest.mark.parametrize(("declared", "mounted"), [("wr.x", "acme.x"), ("x", "acme.x"), ("own.x", "own.x")])
def test_a_mount_renames_what_has_no_name_of_its_own(tmp_path: Path, declared: str, mounted: str) -> None:
    """Rule 38."""
    put(tmp_path, "w.json", id=declared)
    assert ids(library(tmp_path, "acme")) == [mounted]


def test_no_source_can_be_mounted_as_wr(tmp_path: Path) -> None:
    put(tmp_path, "w.json", id="x")
    assert [diagnostic.code for diagnostic in library(tmp_path, "wr").listing().diagnostics] == ["IL403"]


@pytest.mark.parametrize(
    ("source", "namespace"), [("user", "user"), ("project", "project"), ("git", "repo"), ("plugin", "repo")]
)
def test_the_suggested_namespace_is_that_of_the_source(tmp_path: Path, source: Any, namespace: str) -> None:
    put(tmp_path, "w.json", id="my-flow")
    listing = Library([Source(source, tmp_path)]).listing()
    assert [entry.suggested_id for entry in listing.entries] == [f"{namespace}.my-flow"]
    assert f"{namespace}.my-flow" in listing.diagnostics[0].next_action


def test_an_id_without_a_namespace_runs_with_a_suggestion(tmp_path: Path) -> None:
    """Rule 38."""
    put(tmp_path, "w.json", id="my-flow")
    listing = library(tmp_path).listing()
    (entry,) = listing.entries
    assert (entry.id_status, entry.suggested_id) == ("legacy", "user.my-flow")
    assert [diagnostic.code for diagnostic in listing.diagnostics] == ["IL402"]


def test_lookup_spellings_are_understood_and_collisions_named(tmp_path: Path) -> None:
    put(tmp_path, "a.json", id="t.some_flow")
    one = library(tmp_path)
    assert isinstance(one.load("t-some-flow"), Loaded)
    put(tmp_path, "b.json", id="t.some-flow")
    assert [diagnostic.code for diagnostic in one.listing().diagnostics] == ["IL405"]
    assert isinstance(one.load("t-some-flow"), Diagnostic)


def test_two_files_of_one_name_are_a_warning(tmp_path: Path) -> None:
    put(tmp_path, "a.json", name="First")
    put(tmp_path, "b.json", name="Second")
    listing = library(tmp_path).listing()
    assert [entry.name for entry in listing.entries] == ["First"]
    assert [(diagnostic.code, diagnostic.file) for diagnostic in listing.diagnostics] == [("IL404", "b.json")]


def test_a_workflow_may_need_a_newer_server(tmp_path: Path) -> None:
    put(tmp_path, "w.json", minServerVersion="99.0.0")
    found = library(tmp_path).load("t.w")
    assert isinstance(found, Diagnostic)
    assert found.code == "IL406"


def test_other_data_in_the_folder_is_not_a_workflow(tmp_path: Path) -> None:
    put(tmp_path, "w.json")
    write(tmp_path, {"package.json": '{"name": "x"}', "w.scenario.yaml": "steps: []\n", ".x/y.json": "{"})
    listing = library(tmp_path).listing()
    assert len(listing.entries) == 1
    assert listing.diagnostics == ()


@pytest.mark.parametrize("name", ["json", "yaml", "toon"])
def test_a_file_named_like_an_ending_is_not_a_workflow(tmp_path: Path, name: str) -> None:
    put(tmp_path, "w.json")
    write(tmp_path, {name: "{}"})
    assert ids(library(tmp_path)) == ["t.w"]


@pytest.mark.parametrize("name", ["w.txt", "w.jsonc", "w"])
def test_a_file_whose_name_does_not_tell_its_format_is_reported(tmp_path: Path, name: str) -> None:
    put(tmp_path, name)
    (found,) = library(tmp_path / name).listing().diagnostics
    assert (found.file, found.code, found.next_action) == (name, "IL001", "rename the file by its format")


@pytest.mark.parametrize("name", ["w.JSON", "w.Yaml", "w/workflow.toon"])
def test_an_ending_may_have_capitals(tmp_path: Path, name: str) -> None:
    put(tmp_path, name)
    if name == "w/workflow.toon":
        activity = "id: a\nversion: 1.0.0\nname: A\nsteps[1]:\n  - id: s\n    name: S\n"
        write(tmp_path / "w", {"workflow.toon": "id: w\nversion: 1.0.0\ntitle: W\ninitialActivity: a\n"})
        write(tmp_path / "w", {"activities/01-a.TOON": activity})
    listing = library(tmp_path).listing()
    assert [entry.name for entry in listing.entries] == ["W"]
    assert not [found for found in listing.diagnostics if found.severity == "error"]


def test_a_head_that_cannot_be_read_does_not_stop_the_others(tmp_path: Path) -> None:
    put(tmp_path, "good.json")
    for name in ("lost", "looped"):
        (tmp_path / name).mkdir()
    (tmp_path / "lost" / "workflow.yaml").symlink_to("nowhere")
    (tmp_path / "looped" / "workflow.toon").symlink_to("workflow.toon")
    put(tmp_path / "folder" / "workflow.yaml", "inside.json", id="t.inside")
    (tmp_path / "endless.json").symlink_to("x" * 300)
    listing = library(tmp_path).listing()
    assert [entry.id for entry in listing.entries] == ["t.inside", "t.w"]
    assert [(found.file, found.code) for found in listing.diagnostics] == [
        ("endless.json", "IL001"),
        ("looped/workflow.toon", "IL001"),
        ("lost/workflow.yaml", "IL001"),
    ]


def test_a_single_file_is_a_source(tmp_path: Path) -> None:
    put(tmp_path, "w.json")
    put(tmp_path, "other.json", id="t.other")
    assert ids(library(tmp_path / "w.json")) == ["t.w"]


def test_a_missing_source_is_empty(tmp_path: Path) -> None:
    assert ids(library(tmp_path / "nothing")) == []


def test_changes_are_noticed(tmp_path: Path) -> None:
    put(tmp_path, "w.json", name="Before")
    one = library(tmp_path)
    before = one.load("t.w")
    assert isinstance(before, Loaded)
    put(tmp_path, "w.json", name="After!")
    after = one.load("t.w")
    assert isinstance(after, Loaded)
    assert (before.workflow.name, after.workflow.name) == ("Before", "After!")
    put(tmp_path, "new.json", id="t.new")
    assert isinstance(one.load("t.new"), Loaded)
    (tmp_path / "w.json").unlink()
    assert ids(one) == ["t.new"]


def test_a_change_of_a_borrowed_skill_is_noticed(tmp_path: Path) -> None:
    files = {
        "w/workflow.yaml": "id: w\nversion: 1.0.0\ntitle: W\nskills: {primary: lead}\n",
        "w/activities/a.yaml": "id: a\nname: A\nsteps: [{id: s, name: S, description: D}]\n",
    }
    one = library(write(tmp_path, files))
    assert [diagnostic.code for diagnostic in one.listing().diagnostics] == ["IL206"]
    write(
        tmp_path,
        {
            "meta/workflow.yaml": "id: meta\nversion: 1.0.0\ntitle: M\n",
            "meta/skills/00-lead.toon": "id: lead\n",
        },
    )
    write(tmp_path, {"meta/activities/a.yaml": files["w/activities/a.yaml"]})
    assert one.listing().diagnostics == ()


def test_threads_that_load_at_the_same_time_compile_each_workflow_once(tmp_path: Path) -> None:
    names = [f"t.w{number}" for number in range(12)]
    for name in names:
        put(tmp_path, f"{name}.json", id=name)
    age(tmp_path)
    shared = library(tmp_path)

    def load_all(first: int) -> list[Loaded | Diagnostic]:
        return [shared.load(name) for name in names[first:] + names[:first]]

    loaded = [load for loads in together(load_all) for load in loads]
    assert {item.workflow.id for item in loaded if isinstance(item, Loaded)} == set(names)
    # The compiled value is kept, so that a second compilation would be a second object.
    assert len({id(item.workflow) for item in loaded if isinstance(item, Loaded)}) == len(names)


def age(folder: Path) -> None:
    """Make the files older than the clock's grain, within which a file counts as changed."""
    for path in (folder, *folder.rglob("*")):
        os.utime(path, (1_700_000_000, 1_700_000_000))


def test_the_cache_answers_without_the_compiler(tmp_path: Path) -> None:
    put(tmp_path / "w", "w.json")
    old = 1_600_000_000
    os.utime(tmp_path / "w" / "w.json", (old, old))
    os.utime(tmp_path / "w", (old, old))
    script = textwrap.dedent(f"""
        import sys
        from pathlib import Path
        from interlock.authoring.library import Library, Source
        home = Path({str(tmp_path)!r})
        one = Library([Source("configured", home / "w")], home / "cache")
        print(one.load("t.w").hash, "interlock.authoring.compile.unit" in sys.modules)
    """)
    runs = [
        subprocess.run(
            [sys.executable, "-c", script], capture_output=True, text=True, check=True
        ).stdout.split()
        for _ in range(2)
    ]
    assert runs[0] == [runs[1][0], "True"]
    assert runs[1][1] == "False"


@pytest.mark.parametrize("damage", [b"", b"\x00" * 100, None])
def test_a_damaged_cache_is_ignored(tmp_path: Path, damage: bytes | None) -> None:
    put(tmp_path / "w", "w.json")
    source, cache = Source("configured", tmp_path / "w"), tmp_path / "cache"
    first = Library([source], cache).load("t.w")
    assert isinstance(first, Loaded)
    for path in cache.rglob("*"):
        if path.is_file():
            raw = path.read_bytes()
            path.write_bytes(raw[:-3] + b"xyz" if damage is None else damage)
    again = Library([source], cache).load("t.w")
    assert isinstance(again, Loaded)
    assert again.hash == first.hash


def test_what_comes_from_the_cache_is_what_was_compiled(tmp_path: Path) -> None:
    fresh = Library([BUNDLED])
    Library([BUNDLED], tmp_path).listing()
    cached = Library([BUNDLED], tmp_path)
    for entry in fresh.listing().entries:
        one, other = cached.load(entry.id), fresh.load(entry.id)
        assert isinstance(one, Loaded)
        assert isinstance(other, Loaded)
        assert one.hash == entry.hash
        assert one.workflow == other.workflow
        assert one.texts == other.texts


def test_a_cache_that_cannot_be_written_costs_only_time(tmp_path: Path) -> None:
    put(tmp_path / "w", "w.json")
    blocked = write(tmp_path, {"cache": "a file, not a folder"}) / "cache"
    assert isinstance(Library([Source("configured", tmp_path / "w")], blocked).load("t.w"), Loaded)


def test_a_cache_that_makes_the_data_directory_makes_it_private(tmp_path: Path) -> None:
    put(tmp_path / "flows", "w.json")
    Library([Source("user", tmp_path / "flows")], tmp_path / "data" / "cache").listing()
    assert (tmp_path / "data").stat().st_mode & 0o777 == 0o700


def test_no_diagnostic_shows_an_absolute_path(tmp_path: Path) -> None:
    write(tmp_path, {"a.json": "{", "b.yaml": "a: [", "c/workflow.toon": "id: c\n"})
    listing = library(tmp_path).listing()
    assert listing.diagnostics
    assert str(tmp_path) not in repr(listing.diagnostics)


def test_clones_are_mounted_under_their_names(tmp_path: Path) -> None:
    put(tmp_path / "sources" / "team", "w.json", id="x")
    entries = Library([BUNDLED, *clones(tmp_path)]).listing().entries
    assert {"team.x": "git", "wr.feature": "bundled"}.items() <= {
        entry.id: entry.source for entry in entries
    }.items()
    assert clones(tmp_path / "nothing") == []


@pytest.mark.parametrize("workflow_id", ["team.9lives", "9team.lives", "team.lives.twice", "team._x"])
def test_both_parts_of_an_id_begin_with_a_letter(tmp_path: Path, workflow_id: str) -> None:
    put(tmp_path, "w.json", id=workflow_id)
    assert [diagnostic.code for diagnostic in library(tmp_path).listing().diagnostics] == ["IL401"]


@pytest.mark.parametrize("name", ["Acme", "a.b", "../x", "1x"])
def test_a_mount_needs_a_proper_name(tmp_path: Path, name: str) -> None:
    put(tmp_path, "w.json", id="x")
    listing = library(tmp_path, name).listing()
    assert [diagnostic.code for diagnostic in listing.diagnostics] == ["IL401"]
    assert listing.entries == ()


def test_a_plugin_brings_its_workflows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(
        tmp_path,
        {
            "acme_flows/__init__.py": "",
            "acme_flows-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: acme-flows\nVersion: 1.0\n",
            "acme_flows-1.0.dist-info/entry_points.txt": "[interlock.workflows]\nacme = acme_flows\n",
        },
    )
    put(tmp_path / "acme_flows", "w.json", id="x")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert [entry.id for entry in Library(list(plugins())).listing().entries] == ["acme.x"]


def test_circular_links_and_links_that_lead_out_are_harmless(tmp_path: Path) -> None:
    put(tmp_path / "in", "w.json")
    (tmp_path / "in" / "circle").symlink_to(tmp_path / "in")
    write(tmp_path, {"away/workflow.yaml": "id: t.away\nname: A\nversion: 1.0.0\nsteps: []\n"})
    (tmp_path / "in" / "away").symlink_to(tmp_path / "away")
    (tmp_path / "in" / "x.json").symlink_to(tmp_path / "away" / "workflow.yaml")
    listing = library(tmp_path / "in").listing()
    assert [entry.id for entry in listing.entries] == ["t.w"]
    assert [(diagnostic.code, diagnostic.file) for diagnostic in listing.diagnostics] == [
        ("IL009", "away/workflow.yaml"),
        ("IL009", "x.json"),
    ]


WHOLE = json.dumps(
    head(
        {"id": "ask", "title": "Ask", "prompt": "Ask {{x}}.", "runCondition": {"var": "x", "equals": 1}},
        {
            "id": "g", "type": "gate", "message": "?",
            "options": [{"id": "a", "effect": {"setVariable": {"x": 1}}}],
        },
        {
            "id": "l", "type": "loop", "title": "L", "body": [ASK],
            "loop": {"type": "while", "condition": {"var": "x"}, "maxIterations": 3},
        },
    ),
    indent=1,
)  # fmt: skip

FRAGMENTS = [
    "null",
    "[]",
    "{}",
    '""',
    "0",
    "-1",
    "true",
    '"x"',
    "1e999",
    "[[[]]]",
    '{"var": 1}',
    '{"not": []}',
]


@settings(
    max_examples=300,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    deadline=None,
)
@given(st.data())
def test_damage_to_a_file_gives_diagnostics_and_no_exception(tmp_path: Path, data: st.DataObject) -> None:
    values = data.draw(st.lists(st.sampled_from(FRAGMENTS), min_size=1, max_size=3))
    lines = WHOLE.split("\n")
    for value in values:
        row = data.draw(st.integers(0, len(lines) - 1))
        key, colon, _ = lines[row].partition(":")
        lines[row] = f"{key}: {value}," if colon else data.draw(st.text(max_size=5))
    (tmp_path / "w.json").write_text("\n".join(lines), encoding="utf-8", errors="replace")
    listing = library(tmp_path).listing()
    for diagnostic in listing.diagnostics:
        assert diagnostic.file == "w.json" or diagnostic.code == "IL405"
        assert diagnostic.line >= 1
    assert (
        listing.entries
        or any(diagnostic.severity == "error" for diagnostic in listing.diagnostics)
        or "steps" not in "".join(lines)
    )
