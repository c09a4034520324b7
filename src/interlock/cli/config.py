"""What the user has set: flag over variable over project file over user file.

A project's own file, which an agent can edit, may only tighten (rule 29).
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, get_args

import msgspec
from msgspec import Struct

from interlock.core.run.commands import DecisionPolicy, Enforcement, Terms
from interlock.core.run.preferences import PRESETS, Mode

SurfaceName = Literal["execution", "session", "gated", "navigation", "lookup"]

SURFACES: tuple[SurfaceName, ...] = get_args(SurfaceName)

# Each list goes from loose to tight: a project file may move a setting to the right, never to the left.
TIGHTER: Mapping[str, tuple[str, ...]] = {
    "mode": ("never-stop", "stop", "guided"),
    "decisions": ("agent", "auto", "user"),
    "enforcement": ("advisory", "strict"),
}


class BadConfig(Exception):
    """A setting that cannot be used; the message names it, where it stands, and what it may be."""


class Config(Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """Every setting there is. None means that nobody has said anything."""

    surface: SurfaceName = "execution"
    workflows: tuple[str, ...] = ()
    project: str | None = None
    data_dir: str | None = None
    store: str | None = None
    mode: Mode | None = None
    decisions: DecisionPolicy = "auto"
    enforcement: Enforcement = "strict"
    min_response_seconds: float = 3.0
    disable_tools: tuple[str, ...] = ()

    @property
    def terms(self) -> Terms:
        return Terms(self.decisions, self.enforcement, int(self.min_response_seconds * 1000))

    @property
    def folder(self) -> Path:
        """The data directory."""
        if self.data_dir:
            return Path(self.data_dir).expanduser()
        if self.store and self.store.startswith("sqlite://"):
            return Path(self.store.removeprefix("sqlite://")).expanduser()
        return _user_data_dir()


def _user_data_dir() -> Path:
    from platformdirs import user_data_path

    return user_data_path("interlock", appauthor=False)


def resolve(flags: Mapping[str, Any], environment: Mapping[str, str] = os.environ) -> Config:
    """Merge the four places, and say which one is wrong if one is."""
    merged = {
        name: value for target in _places(flags, environment).values() for name, value in target.items()
    }
    try:
        return msgspec.convert(merged, Config, strict=False)
    except msgspec.ValidationError as error:
        raise BadConfig(f"{error}. Settings: {', '.join(sorted(known()))}") from error


def origins(flags: Mapping[str, Any], environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Where each setting that somebody has made comes from."""
    return {name: target for target, settings in _places(flags, environment).items() for name in settings}


def _places(flags: Mapping[str, Any], environment: Mapping[str, str]) -> dict[str, Mapping[str, Any]]:
    """The four places, the weakest first."""
    variables = dict(_variables(environment))
    first = {**variables, **flags}
    folder = Config(data_dir=first.get("data-dir"), store=first.get("store")).folder
    user = _file(folder / "config.toml")
    project_dir = first.get("project") or user.get("project")
    project = _file(Path(project_dir) / ".interlock" / "config.toml") if project_dir else {}
    return {"user": user, "project": _tightening(user, project), "variable": variables, "flag": flags}


def known() -> dict[str, str]:
    """Setting names, as flags and files spell them, with their attribute names."""
    return {field.encode_name: field.name for field in msgspec.structs.fields(Config)}


def _variables(environment: Mapping[str, str]) -> Iterator[tuple[str, Any]]:
    for name in known():
        value = environment.get("INTERLOCK_" + name.upper().replace("-", "_"))
        if value is not None:
            yield name, _split(value) if name in ("workflows", "disable-tools") else value


def _split(value: str) -> list[str]:
    return [one for one in value.split(os.pathsep) if one]


def _file(path: Path) -> dict[str, Any]:
    if not path.is_file():
        return {}
    import tomllib

    try:
        found = tomllib.loads(path.read_text())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise BadConfig(f"{path.name}: {error}") from error
    unknown = set(found) - set(known())
    if unknown:
        raise BadConfig(f"{path.name}: unknown setting '{min(unknown)}'. Settings: {', '.join(known())}")
    return found


def _tightening(user: Mapping[str, Any], project: Mapping[str, Any]) -> dict[str, Any]:
    """What a project file may say: anything harmless, and only tighter terms than the user's."""
    allowed = {}
    for name, value in project.items():
        order = TIGHTER.get(name)
        if order is None:
            if name in ("workflows", "surface"):
                allowed[name] = value
            continue
        base = user.get(name) or _default(name)
        if value in order and base in order and order.index(value) >= order.index(base):
            allowed[name] = value
    return allowed


def _default(name: str) -> str:
    return "guided" if name == "mode" else str(getattr(Config(), known()[name]))


def preset(config: Config) -> Mode:
    return config.mode or "guided"


assert set(TIGHTER["mode"]) == set(PRESETS)
