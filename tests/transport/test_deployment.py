"""The files in `deploy/`, run as far as that is possible without a container.

Their commands, variables, probes and mounts are used for real processes on a real PostgreSQL.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
import yaml

from interlock.cli.config import Config
from support.cli_process import environment, interlock
from support.http_server import HttpServer, ModernCaller
from support.paths import ROOT
from support.postgres_server import require_postgres, shared_server
from support.replicas import behind_nginx

DEPLOY = ROOT / "deploy"
OF_THE_KEYRING = {"INTERLOCK_KEYRING", "INTERLOCK_KEYRING_FILE"}


def documents(name: str) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all((DEPLOY / name).read_text()))


@pytest.fixture
def store() -> Iterator[str]:
    require_postgres()
    schema = f"deployed_{uuid4().hex[:8]}"
    yield shared_server().in_schema(schema)
    shared_server().execute(f'DROP SCHEMA "{schema}" CASCADE')


def test_every_variable_that_is_set_is_a_setting() -> None:
    compose = documents("compose.yaml")[0]
    (container,) = documents("kubernetes.yaml")[0]["spec"]["template"]["spec"]["containers"]
    image = re.findall(r"^ENV (\w+)=", (ROOT / "Dockerfile").read_text(), re.MULTILINE)
    variables = {
        *(name for service in compose["services"].values() for name in service.get("environment", {})),
        *(variable["name"] for variable in container["env"]),
        *image,
    }
    known = {f"INTERLOCK_{name.upper()}" for name in Config.__struct_fields__}
    ours = {name for name in variables if name.startswith("INTERLOCK_")}
    assert ours - known <= OF_THE_KEYRING | {"INTERLOCK_DATA_DIR"}


def test_the_image_is_built_from_files_that_are_sent_to_the_builder() -> None:
    text = (ROOT / "Dockerfile").read_text()
    copied = [
        word for line in re.findall(r"^COPY ([^-].*) \S+$", text, re.MULTILINE) for word in line.split()
    ]
    allowed = re.findall(r"^!(\S+)", (ROOT / ".dockerignore").read_text(), re.MULTILINE)
    assert copied
    for name in copied:
        assert (ROOT / name).exists()
        assert name in allowed


def test_the_proxy_knows_the_services_of_the_compose_file() -> None:
    replicas = [name for name in documents("compose.yaml")[0]["services"] if name.startswith("interlock-")]
    named = set(re.findall(r"server (interlock-\d+):8750", (DEPLOY / "nginx.conf").read_text()))
    assert sorted(named) == sorted(replicas)


@pytest.mark.slow
def test_the_compose_file_serves_two_replicas_behind_nginx(tmp_path: Path, store: str) -> None:
    services = documents("compose.yaml")[0]["services"]
    data = tmp_path / "data"
    data.mkdir()
    shell, flag, command = services["set-up"]["entrypoint"]
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    env = environment(INTERLOCK_DATA_DIR=str(data), PATH=path)
    tokens = [
        subprocess.run([shell, flag, command], env=env, capture_output=True, text=True, check=True).stdout
        for _ in range(2)
    ]
    assert tokens[0].startswith("ilk_")
    assert tokens[1] == "", "a second start gives out no second token"
    given = {**services["interlock-1"]["environment"], "INTERLOCK_STORE": store}
    given |= {"INTERLOCK_DATA_DIR": str(data), "INTERLOCK_ALLOWED_HOSTS": "localhost"}
    servers: list[HttpServer] = []
    try:
        servers += [HttpServer(data, "--quiet", **given) for _ in range(2)]
        (tmp_path / "nginx").mkdir()
        with behind_nginx(tmp_path / "nginx", servers) as address:
            caller = ModernCaller(f"localhost:{address.rpartition(':')[2]}", tokens[0].strip())
            assert caller.call("list_workflows")["workflows"]
            caller.close()
    finally:
        codes = [server.stop() for server in servers]
    assert codes == [0, 0]


@pytest.mark.slow
def test_a_pod_of_the_manifest_starts_answers_its_probes_and_ends(tmp_path: Path, store: str) -> None:
    """The container's command and variables, and keys that are mounted from a secret."""
    pod = documents("kubernetes.yaml")[0]["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    own = tmp_path / "own"
    token = interlock(own, "auth", "add", "ada").out.strip()
    interlock(own, "keys", "show")
    keyring = (own / "keys" / "keyring.json").read_text()
    data = tmp_path / "data"
    keys, version = data / "keys", data / "keys" / "..version"
    version.mkdir(parents=True)
    (version / "principals.json").write_bytes((own / "keys" / "principals.json").read_bytes())
    (keys / "principals.json").symlink_to(Path("..version") / "principals.json")  # as a secret is mounted
    mounted = sorted(keys.rglob("*"))
    program, *arguments = container["args"]
    assert program == "interlock"
    values = {"store": store, "keyring": keyring}
    given = {
        variable["name"]: values[variable["valueFrom"]["secretKeyRef"]["key"]]
        for variable in container["env"]
    }
    server = HttpServer(data, *arguments[1:], "--port", "0", **given)
    try:
        for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
            get = container[probe]["httpGet"]
            headers = {header["name"]: header["value"] for header in get["httpHeaders"]}
            assert server.request("GET", get["path"], headers=headers).status == 200
        caller = ModernCaller(f"127.0.0.1:{server.port}", token)
        assert caller.call("start_workflow", workflowId="wr.small_task")["kind"] == "ok"
        caller.close()
    finally:
        code = server.stop()
    assert code == 0
    assert sorted(keys.rglob("*")) == mounted, "nothing is written where a secret is mounted"


def test_the_health_check_of_the_image_asks_what_a_server_answers(tmp_path: Path) -> None:
    text = (ROOT / "Dockerfile").read_text()
    found = re.search(r"HEALTHCHECK.* CMD \\\n\s+(\[.*\])", text)
    assert found
    _, *arguments = yaml.safe_load(found[1])
    server = HttpServer(tmp_path, "--quiet")
    try:
        asked = [argument.replace(":8750", f":{server.port}") for argument in arguments]
        assert subprocess.run([sys.executable, *asked], check=False).returncode == 0
    finally:
        server.stop()
    gone = subprocess.run([sys.executable, *asked], check=False, stderr=subprocess.DEVNULL)
    assert gone.returncode != 0
    assert shlex.split(re.findall(r"^CMD \[(.*)\]", text, re.MULTILINE)[0].replace(",", "")) == [
        "interlock",
        "serve",
    ]
