"""The files in `deploy/`, run as far as that is possible without a container.

Their commands, variables, probes and mounts are used for real processes on a real PostgreSQL.
"""

from __future__ import annotations

import configparser
import http.client
import json
import os
import re
import shlex
import shutil
import socket
import ssl
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from interlock.cli.config import Config
from support.cli_process import environment
from support.http_server import Answer, HttpServer, ModernCaller, UnexpectedStatus, bearer, serving
from support.paths import ROOT
from support.postgres_server import require_postgres, shared_server
from support.replicas import behind_nginx, nginx

DEPLOY = ROOT / "deploy"
BIN = Path(sys.executable).parent
OF_THE_KEYRING = {"INTERLOCK_KEYRING", "INTERLOCK_KEYRING_FILE"}


def documents(name: str) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all((DEPLOY / name).read_text()))


def header(name: str) -> str:
    """Return the comment at the top of a file: sentences, and commands after an empty line."""
    text = (DEPLOY / name).read_text()
    lines = [line.removeprefix("#").removeprefix(" ") for line in text.splitlines() if line.startswith("#")]
    return "\n".join(line.removeprefix("  ") for line in lines)


def path_with(*folders: Path) -> str:
    return os.pathsep.join([*map(str, folders), os.environ["PATH"]])


@pytest.fixture
def database() -> dict[str, str]:
    """What leads the printed address of the database to an empty one."""
    require_postgres()
    return shared_server().empty_database("interlock")


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
def test_the_compose_file_serves_two_replicas_behind_nginx(tmp_path: Path, database: dict[str, str]) -> None:
    services = documents("compose.yaml")[0]["services"]
    data = tmp_path / "data"
    data.mkdir()
    shell, flag, command = services["set-up"]["entrypoint"]
    env = environment(INTERLOCK_DATA_DIR=str(data), PATH=path_with(BIN))
    tokens = [
        subprocess.run([shell, flag, command], env=env, capture_output=True, text=True, check=True).stdout
        for _ in range(2)
    ]
    assert tokens[0].startswith("ilk_")
    assert tokens[1] == "", "a second start gives out no second token"
    given = {name: in_compose(value) for name, value in services["interlock-1"]["environment"].items()}
    given |= {"INTERLOCK_DATA_DIR": str(data), **database}
    assert given["INTERLOCK_DECISIONS"] == "user"
    servers: list[HttpServer] = []
    try:
        servers += [HttpServer(data, "--quiet", **given) for _ in range(2)]
        (tmp_path / "nginx").mkdir()
        with behind_nginx(tmp_path / "nginx", servers) as address:
            caller = ModernCaller(f"localhost:{address.rpartition(':')[2]}", tokens[0].strip())
            assert caller.call("start_workflow", workflowId="wr.small_task")["kind"] == "ok"
            for line in inside_containers():
                ran_in(env | given, line)
            assert "first-user" in ran_in(env | given, "interlock sessions --owner all")
            caller.close()
    finally:
        codes = [server.stop() for server in servers]
    assert codes == [0, 0]


def in_compose(value: str) -> str:
    """Fill in a variable as compose does: the one that must be set, and the default of the other."""
    filled = value.replace("${POSTGRES_PASSWORD:?set POSTGRES_PASSWORD}", "secret")
    return filled.replace("${INTERLOCK_ALLOWED_HOSTS:-localhost}", "localhost")


def inside_containers() -> list[str]:
    """Return the commands that the compose file runs in a container."""
    told = [line.partition(" exec interlock-1 ")[2] for line in header("compose.yaml").splitlines()]
    assert any("auth add" in line for line in told)
    return [line for line in told if line]


def ran_in(env: dict[str, str], command: str) -> str:
    ran = subprocess.run(["bash", "-euc", command], env=env, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, f"{command}\n{ran.stderr}"
    return ran.stdout


KUBECTL = """#!{python}
import pathlib, shutil, sys, time
secret, arguments = pathlib.Path({folder!r}), sys.argv[1:]
if arguments[:3] == ["create", "secret", "generic"]:
    version = secret / f"..{{time.time_ns()}}"
    version.mkdir(parents=True)
    for option in arguments:
        kind, _, rest = option.partition("=")
        key, _, value = rest.partition("=")
        if kind == "--from-literal":
            (version / key).write_text(value)
        elif kind == "--from-file":
            shutil.copy(value, version / key)
    (secret / "..new").symlink_to(version.name)
    (secret / "..new").rename(secret / "..data")  # as a mounted secret is replaced
"""


class Cluster:
    """The commands at the top of the manifest as printed, with a `kubectl` that keeps secrets in a folder."""

    def __init__(self, folder: Path) -> None:
        self.secret, self.home = folder / "secret", folder / "home"
        kubectl = folder / "bin" / "kubectl"
        for made in (self.secret, self.home, kubectl.parent):
            made.mkdir(parents=True)
        kubectl.write_text(KUBECTL.format(python=sys.executable, folder=str(self.secret)))
        kubectl.chmod(0o755)
        self.env = environment(HOME=str(self.home), PATH=path_with(kubectl.parent, BIN))
        self.env.pop("XDG_DATA_HOME", None)
        self.first, self.again = re.split(r"\n\n(?=After )", header("kubernetes.yaml"))
        self.again = self.again[self.again.index("\n\n") :].rpartition("\n\n")[0]

    def mount(self, items: list[dict[str, str]], folder: Path) -> None:
        """Mount some keys of the secret as the manifest says."""
        folder.mkdir(parents=True)
        for item in items:
            (folder / item["path"]).symlink_to(self.secret / "..data" / item["key"])


@pytest.mark.slow
def test_the_manifest_works_as_printed_and_its_keys_are_rotated_without_a_restart(
    tmp_path: Path, database: dict[str, str]
) -> None:
    pod = documents("kubernetes.yaml")[0]["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    cluster = Cluster(tmp_path)
    printed = ran_in(cluster.env, cluster.first.partition("\n\n")[2])
    agent, approver = re.findall(r"^ilk_\w+", printed, re.MULTILINE)
    data = tmp_path / "data"
    volumes = {volume["name"]: volume for volume in pod["volumes"]}
    assert {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]} == {
        "data": "/data",
        "keys": "/data/keys",
    }
    cluster.mount(volumes["keys"]["secret"]["items"], data / "keys")
    mounted = sorted((data / "keys").rglob("*"))
    program, *arguments = container["args"]
    assert program == "interlock"
    values = cluster.secret / "..data"
    given = {
        variable["name"]: variable["value"].replace("/data/", f"{data}/")
        if "value" in variable
        else (values / variable["valueFrom"]["secretKeyRef"]["key"]).read_text()
        for variable in container["env"]
    }
    server = HttpServer(data, *arguments[1:], "--port", "0", **given, **database)
    try:
        for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
            get = container[probe]["httpGet"]
            headers = {each["name"]: each["value"] for each in get["httpHeaders"]}
            assert server.request("GET", get["path"], headers=headers).status == 200
        caller = ModernCaller(f"127.0.0.1:{server.port}", agent)
        begun = caller.call("start_workflow", workflowId="wr.small_task")
        asked = {**bearer(approver), "Host": "interlock.example"}
        assert server.request("GET", "/inbox", headers=asked).status == 200
        answers = []
        for step in ("prepare", "activate", "retire"):
            ran_in(cluster.env, f"interlock keys {step}\n{cluster.again}")
            answers.append(caller.call("continue_workflow", stateToken=begun["stateToken"]))
        assert [answer.get("code") or answer["kind"] for answer in answers] == [
            "ok",
            "ok",
            "TOKEN_KEY_RETIRED",
        ]
        fresh = caller.call("continue_workflow", stateToken=answers[1]["stateToken"])
        assert fresh["kind"] == "ok", "a token that was given after the activation outlives the old key"
        ran_in(cluster.env, f"interlock auth revoke ada\n{cluster.again}")
        with pytest.raises(UnexpectedStatus, match="401"):
            caller.call("list_workflows")
        caller.close()
    finally:
        code = server.stop()
    assert code == 0
    assert sorted((data / "keys").rglob("*")) == mounted, "nothing is written where a secret is mounted"


def test_the_printed_secret_is_one_that_kubectl_makes(tmp_path: Path) -> None:
    kubectl = shutil.which("kubectl")
    if kubectl is None:
        pytest.skip("kubectl is not installed")
    home = tmp_path / "home"
    (home / ".local/share/interlock/keys").mkdir(parents=True)
    for name in ("keyring.json", "principals.json"):
        (home / ".local/share/interlock/keys" / name).write_text("{}")
    printed = Cluster(tmp_path / "cluster").again.replace("-o yaml | kubectl apply -f -", "-o json")
    made = json.loads(ran_in(environment(HOME=str(home)), printed))
    assert made["metadata"]["name"] == "interlock"
    assert sorted(made["data"]) == ["keyring.json", "principals.json", "store"]


@pytest.mark.slow
def test_the_unit_starts_a_server_behind_the_tls_proxy(tmp_path: Path) -> None:
    """The unit's command, the proxy of nginx-tls.conf in front of it, and Prometheus with its token."""
    unit = configparser.ConfigParser(interpolation=None, strict=False)
    unit.optionxform = str  # type: ignore[assignment,method-assign]
    unit.read(DEPLOY / "interlock.service")
    program, serve, *arguments = shlex.split(unit["Service"]["ExecStart"])
    assert (program, serve) == ("/opt/interlock/bin/interlock", "serve")
    data, env = tmp_path / "data", environment(PATH=path_with(BIN))
    first = next(line for line in header("interlock.service").splitlines() if " auth add " in line)
    here = first.partition("/opt/interlock/bin/")[2].replace("/var/lib/interlock", str(data))
    admin = ran_in(env, here).strip()
    target = tmp_path / "interlock-token"
    ran_in(
        {**env, "INTERLOCK_DATA_DIR": str(data)},
        f"cd {tmp_path}\n{header('prometheus.yaml').split(chr(10) * 2)[1]}",
    )
    (job,) = documents("prometheus.yaml")[0]["scrape_configs"]
    assert Path(job["authorization"]["credentials_file"]).name == target.name
    with serving(data, *arguments) as server, behind_tls(tmp_path, server) as ask:
        body = json.dumps({"token": admin}).encode()
        signed_in = ask("POST", "/console/login", body, {"Content-Type": "application/json"})
        assert "; Secure" in signed_in.headers["set-cookie"]
        scraped = ask("GET", job["metrics_path"], b"", bearer(target.read_text().strip()))
        assert (scraped.status, b"interlock_ready 1" in scraped.body) == (200, True)
        assert ask("GET", "/inbox", b"", bearer(target.read_text().strip())).status == 403
        origin = {"Origin": "https://interlock.example", "Content-Type": "application/x-www-form-urlencoded"}
        for method in ("GET", "POST"):  # as a browser opens a link that answers, and sends its form
            answered = ask(method, "/answer/x", b"", origin)
            assert (answered.status, b"This link is not valid" in answered.body) == (404, True)
    assert job["static_configs"] == [{"targets": ["interlock.example"]}]
    assert {line["route"] for line in map(json.loads, server.log.splitlines()) if line["status"] == 403} == {
        "/inbox"
    }


@contextmanager
def behind_tls(folder: Path, server: HttpServer) -> Iterator[Callable[..., Answer]]:
    """Run nginx-tls.conf with a certificate of its own, and yield how a client of it asks."""
    certificate, key = folder / "fullchain.pem", folder / "privkey.pem"
    name = ["-subj", "/CN=interlock.example", "-addext", "subjectAltName=DNS:interlock.example"]
    made = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", *name]
    subprocess.run([*made, "-keyout", str(key), "-out", str(certificate)], check=True, capture_output=True)
    text = f"events {{}}\nhttp {{\naccess_log off;\n{(DEPLOY / 'nginx-tls.conf').read_text()}\n}}"
    replaced = {
        "/etc/ssl/interlock/fullchain.pem": str(certificate),
        "/etc/ssl/interlock/privkey.pem": str(key),
        "http://127.0.0.1:8750": server.url,
    }
    context = ssl.create_default_context(cafile=str(certificate))
    with nginx(folder, text, replaced, ["listen 443", "listen 80"]) as (port, _):

        def ask(method: str, path: str, body: bytes, headers: dict[str, str]) -> Answer:
            plain = socket.create_connection(("127.0.0.1", port), timeout=60)
            with context.wrap_socket(plain, server_hostname="interlock.example") as secured:
                connection = http.client.HTTPConnection("interlock.example")
                connection.sock = secured
                connection.request(method, path, body, {**headers, "X-Forwarded-Proto": "http"})
                response = connection.getresponse()
                return Answer(response.status, dict(response.headers), response.read())

        yield ask


def test_systemd_accepts_the_unit() -> None:
    analyze = shutil.which("systemd-analyze")
    if analyze is None:
        pytest.skip("systemd is not installed")
    verify = [analyze, "verify", "--man=no", str(DEPLOY / "interlock.service")]
    said = subprocess.run(verify, capture_output=True, text=True, check=False)
    absent = "Command /opt/interlock/bin/interlock is not executable: No such file or directory"
    assert [line for line in said.stderr.splitlines() if absent not in line] == []


def test_every_deployment_lets_only_users_decide() -> None:
    compose, kubernetes = documents("compose.yaml")[0], documents("kubernetes.yaml")[0]
    (container,) = kubernetes["spec"]["template"]["spec"]["containers"]
    unit = re.findall(r"^ExecStart=(.*)$", (DEPLOY / "interlock.service").read_text(), re.MULTILINE)
    replicas = [service for name, service in compose["services"].items() if name.startswith("interlock-")]
    assert [replica["environment"]["INTERLOCK_DECISIONS"] for replica in replicas] == ["user", "user"]
    for command in (" ".join(container["args"]), *unit):
        assert "--decisions user" in command


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
