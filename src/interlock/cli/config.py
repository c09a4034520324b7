"""The settings: a flag outranks a variable, a variable the project's file, that the user's file.

An agent can edit a project's file, so that file may only tighten the terms of a run (rule 29).
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, get_args

import msgspec
from msgspec import Struct

from interlock.core.run.commands import Terms
from interlock.core.run.preferences import (
    PRESETS,
    RETENTION_DAYS,
    STALE_HOURS,
    DecisionPolicy,
    Enforcement,
    Mode,
)
from interlock.core.run.surface_policy import SurfaceName
from interlock.core.values import Json
from interlock.store.sqlite.schema import FILE

LISTS = ("workflows", "disable-tools", "allowed-hosts", "trusted-proxies", "check-folders")
FOR_SERVE = (
    "host",
    "port",
    "allowed-hosts",
    "trusted-proxies",
    "check-folders",
    "rate-limit",
    "concurrency-limit",
    "oauth-issuer",
    "oauth-audience",
    "oauth-jwks",
)
NOT_FOR_PROJECTS = ("surface", "store", "store-deadline", *FOR_SERVE)
PROJECT_WORKFLOWS = "project-workflows"

# Each list goes from loose to tight: a project file may move a setting to the right, never to the left.
TIGHTER: Mapping[str, tuple[str, ...]] = {
    "mode": ("never-stop", "stop", "guided"),
    "decisions": ("agent", "auto", "client", "user"),
    "enforcement": ("advisory", "strict"),
}
assert set(TIGHTER["mode"]) == set(PRESETS)


class BadConfig(Exception):
    """A setting that cannot be used. The message names it, where it is set, and what it may be."""


class Config(Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """All settings. None means that nobody has set it."""

    surface: SurfaceName = "execution"
    workflows: tuple[str, ...] = ()
    project: str | None = None
    data_dir: str | None = None
    store: str | None = None
    store_deadline: Annotated[float, msgspec.Meta(ge=0.1)] = 4.0
    mode: Mode | None = None
    decisions: DecisionPolicy = "auto"
    enforcement: Enforcement = "strict"
    min_response_seconds: float = 3.0
    disable_tools: tuple[str, ...] = ()
    host: str = "127.0.0.1"
    port: Annotated[int, msgspec.Meta(ge=0, le=65_535)] = 8750
    allowed_hosts: tuple[str, ...] = ()
    trusted_proxies: tuple[str, ...] = ()
    check_folders: tuple[str, ...] = ()
    rate_limit: Annotated[float, msgspec.Meta(gt=0)] = 100.0
    concurrency_limit: Annotated[int, msgspec.Meta(ge=1)] = 256
    retention_days: Annotated[int, msgspec.Meta(ge=0)] = RETENTION_DAYS
    stale_hours: Annotated[int, msgspec.Meta(ge=1)] = STALE_HOURS
    console_url: Annotated[str, msgspec.Meta(pattern=r"^(https?://[^\s?#]+)?$")] = ""
    oauth_issuer: str | None = None
    oauth_audience: str | None = None
    oauth_jwks: str | None = None
    project_workflows: tuple[str, ...] = ()  # `workflows` of the project's file, which rank as the project's

    @property
    def terms(self) -> Terms:
        return Terms(self.decisions, self.enforcement, int(self.min_response_seconds * 1000))

    @property
    def folder(self) -> Path:
        """The data directory: keys, cache, settings, the user's workflows, and the database by default."""
        if self.data_dir:
            return Path(self.data_dir).expanduser()
        from platformdirs import user_data_path

        return user_data_path("interlock", appauthor=False)

    @property
    def postgres_url(self) -> str | None:
        """The PostgreSQL database that `store` names, if it names one."""
        is_postgres = self.store is not None and self.store.startswith(("postgresql://", "postgres://"))
        return self.store if is_postgres else None

    @property
    def database(self) -> Path:
        """The database file: the one that `store` names, else one in the data directory."""
        if not self.store:
            return self.folder / FILE
        scheme, _, path = self.store.partition("://")
        if scheme != "sqlite":
            raise BadConfig(
                f"store: '{without_password(self.store)}' is not supported;"
                " use sqlite:///PATH/TO/FILE.db or postgresql://HOST/DATABASE"
            )
        file = Path(path[1:] if os.name == "nt" or path.startswith("/~") else path).expanduser()
        if not path.startswith("/") or path.endswith("/") or file.is_dir():
            raise BadConfig(f"store: '{self.store}' does not name a file; use sqlite:///PATH/TO/FILE.db")
        return file


def without_password(url: str) -> str:
    """Return a URL that can be shown."""
    head, separator, rest = url.partition("://")
    account, at, place = rest.rpartition("@")
    shown = f"{account.partition(':')[0]}{':***' if ':' in account else ''}{at}{place}"
    parts = shown.split("password=")
    hidden = [parts[0], *("***" + part[part.find("&") :] * ("&" in part) for part in parts[1:])]
    return head + separator + "password=".join(hidden)


def setting_names() -> dict[str, str]:
    """Return the setting names, as flags and files spell them, with their attribute names."""
    fields = {field.encode_name: field.name for field in msgspec.structs.fields(Config)}
    return {name: attribute for name, attribute in fields.items() if name != PROJECT_WORKFLOWS}


def shown_values(config: Config) -> dict[str, Json]:
    """Return every setting as people may see it."""
    values: dict[str, Json] = {
        name: msgspec.to_builtins(getattr(config, attribute)) for name, attribute in setting_names().items()
    }
    values["data-dir"] = str(config.folder)
    if config.project_workflows:
        values[PROJECT_WORKFLOWS] = list(config.project_workflows)
    if config.store is not None:
        values["store"] = without_password(config.store)
    return values


def text_of_setting(value: Json) -> str:
    """Return the value of a setting in one line; empty if it has none."""
    if isinstance(value, (list, tuple)):
        return ", ".join(map(str, value))
    return "" if value is None else str(value)


def user_file(data_dir: str | None, environment: Mapping[str, str] = os.environ) -> Path:
    """Return the user's config file, also where one of its settings is not valid."""
    folder = Config(data_dir=data_dir or environment.get(variable_of("data-dir"))).folder
    return folder / "config.toml"


def variable_of(name: str) -> str:
    """Return the environment variable of a setting."""
    return "INTERLOCK_" + name.upper().replace("-", "_")


def resolve(flags: Mapping[str, Any], environment: Mapping[str, str] = os.environ) -> Config:
    """Merge the settings of all origins; a value that a setting cannot have is an error."""
    merged: dict[str, Any] = {}
    for origin, settings in _by_origin(flags, environment).items():
        for name, value in settings.items():
            checked_setting(name, value, origin)
            merged[name] = value
    return msgspec.convert(merged, Config, strict=False)


def checked_setting(name: str, value: Any, origin: str) -> Any:
    """Return a value in the type of its setting; one that the setting cannot have is an error."""
    types = {field.encode_name: field.type for field in msgspec.structs.fields(Config)}
    try:
        return msgspec.convert(value, types[name], strict=False)
    except msgspec.ValidationError as error:
        # The choices of a Literal, also of one that may be None.
        choices = [choice for part in get_args(types[name]) for choice in get_args(part) or (part,)]
        names = ", ".join(choice for choice in choices if isinstance(choice, str))
        plain = str(error).partition(", got")[0].lower()
        plain = plain.replace("`int`", "a whole number").replace("`float`", "a number")
        expected = f"use one of {names}" if names else plain
        raise BadConfig(f"{name} ({origin}): '{value}' is not valid; {expected}") from error


def is_looser(name: str, value: Any, than: Any) -> bool:
    """Say whether a term (mode, decisions, enforcement) is looser than another; None means its default."""
    if name not in TIGHTER:
        return False
    default = getattr(Config(), setting_names()[name]) or "guided"
    order = TIGHTER[name]
    return than in (None, *order) and order.index(value or default) < order.index(than or default)


def origins(flags: Mapping[str, Any], environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Say for each setting that somebody has made where it comes from."""
    by_origin = _by_origin(flags, environment)
    return {name: origin for origin, settings in by_origin.items() for name in settings}


def _by_origin(flags: Mapping[str, Any], environment: Mapping[str, str]) -> dict[str, Mapping[str, Any]]:
    """Read the settings of all origins, those that are outranked first."""
    variables: dict[str, Any] = {}
    for name in setting_names():
        value = environment.get(variable_of(name))
        if value is not None:
            variables[name] = [part for part in value.split(os.pathsep) if part] if name in LISTS else value
    outer = {**variables, **flags}
    user = settings_in(user_file(outer.get("data-dir"), environment))
    found = None if "project" in outer or "project" in user else project_around(environment)
    project_dir = outer.get("project") or user.get("project") or found
    if project_dir and not Path(project_dir).is_dir():
        raise BadConfig(f"project: there is no folder {project_dir}")
    project_file = Path(project_dir or "") / ".interlock" / "config.toml"
    project = settings_in(project_file) if project_dir else {}
    for name in NOT_FOR_PROJECTS:
        if name in project:
            raise BadConfig(
                f"{project_file}: a project cannot set '{name}'; use --{name}, {variable_of(name)} or "
                "the config.toml in your data directory"
            )
    here = {"project": found} if found else {}
    return {
        "working directory": here,
        "user": user,
        "project": _tightening(user, project),
        "variable": variables,
        "flag": flags,
    }


def project_around(environment: Mapping[str, str]) -> str | None:
    """Return the nearest folder with `.interlock` around the folder that is worked in."""
    folder = work_folder(environment)
    return project_at(folder) if folder else None


def work_folder(environment: Mapping[str, str]) -> Path | None:
    """Return the folder that is worked in: the client's project or the working directory.

    Clients start servers in the folder that they are opened in; some name it in a variable instead.
    """
    try:
        return Path(environment.get("CLAUDE_PROJECT_DIR") or Path.cwd())
    except OSError:  # the working directory was removed
        return None


def project_at(start: Path) -> str | None:
    """Return the nearest folder with `.interlock` at or above this one."""
    start = start.resolve()
    return next((str(folder) for folder in (start, *start.parents) if (folder / ".interlock").is_dir()), None)


def settings_in(path: Path) -> dict[str, Any]:
    """Return the settings of a file, by name; an unknown name is an error."""
    if not path.is_file():
        return {}
    import tomllib

    try:
        settings = tomllib.loads(path.read_text())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise BadConfig(f"{path}: {error}") from error
    unknown = set(settings) - set(setting_names())
    if unknown:
        raise BadConfig(f"{path}: unknown setting '{min(unknown)}'. Settings: {', '.join(setting_names())}")
    return settings


def _tightening(user: Mapping[str, Any], project: Mapping[str, Any]) -> dict[str, Any]:
    """Keep what a project file may set: workflows, and terms that are tighter than the user's."""
    allowed = {PROJECT_WORKFLOWS: project["workflows"]} if "workflows" in project else {}
    for name, order in TIGHTER.items():
        default = getattr(Config(), setting_names()[name]) or "guided"
        value, base = project.get(name), user.get(name) or default
        if value in order and base in order and order.index(value) >= order.index(base):
            allowed[name] = value
    return allowed
