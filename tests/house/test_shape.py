"""How modules are grouped and named. What is known to break a rule is listed, and the lists only shrink."""

from __future__ import annotations

from support.house import are_parameters_of_a_tool, modules, parse_module, repeated_in_a_room
from tools.shape import (
    import_cycles,
    modules_per_package,
    repeated_classes,
    repeated_module_names,
)

MOST_MODULES = 14

# One module per command of the command line.
UNLIMITED = {"interlock.cli.commands"}


def test_a_package_has_at_most_fourteen_modules() -> None:
    counts = modules_per_package([module for module in modules() if not module.is_package])
    large = {package for package, count in counts if count > MOST_MODULES}
    assert large - UNLIMITED == set()


def test_a_public_class_name_is_used_once() -> None:
    """The parameters of a tool are named after it on every surface that has the tool."""
    repeated = {
        name for name, where in repeated_classes(modules()).items() if not are_parameters_of_a_tool(where)
    }
    assert repeated == set()


def test_a_module_name_is_used_once_in_a_room() -> None:
    assert set(repeated_in_a_room(repeated_module_names(modules()))) == set()


def test_no_modules_import_each_other() -> None:
    assert import_cycles(modules()) == []


def test_a_repeated_module_name_is_recognised() -> None:
    repeated = {
        "ids": ["interlock.authoring.compile.ids", "interlock.ledger.ids"],
        "params": ["interlock.surfaces.gated.params", "interlock.surfaces.session.params"],
        "render": ["interlock.surfaces.gated.render", "interlock.surfaces.shared.render"],
        "state": ["interlock.core.run.state", "interlock.core.state"],
    }
    assert set(repeated_in_a_room(repeated)) == {"surfaces: render", "core: state"}


def test_parameters_of_one_tool_are_recognised() -> None:
    gated, session = "interlock.surfaces.gated.params", "interlock.surfaces.session.params"
    assert are_parameters_of_a_tool([gated, session])
    assert not are_parameters_of_a_tool([gated, "interlock.core.run.commands"])
    assert not are_parameters_of_a_tool([gated, "interlock.surfaces.shared.session_params"])
    assert not are_parameters_of_a_tool([gated, "interlock.surfaces.session.tools"])


def test_a_cycle_is_recognised_also_if_an_import_is_late_or_for_types() -> None:
    typed = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from interlock.c import C"
    circle = [
        parse_module("interlock.a", "def late():\n    from interlock import b"),
        parse_module("interlock.b", typed),
        parse_module("interlock.c", "import interlock.a"),
        parse_module("interlock.d", "from interlock.a import late"),
    ]
    assert import_cycles(circle) == [["interlock.a", "interlock.b", "interlock.c"]]
