"""Signing keys, attestations and receipts at the command line, and the verifier in another environment."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import apsw
import pytest
from click.testing import CliRunner, Result
from msgspec.structs import replace

from interlock.cli.main import cli
from interlock.ledger.evidence.standalone import judged_files, public_keys
from interlock.ledger.evidence.statements import attestation, stored_log
from interlock.ledger.evidence.verification import verified_files, verified_session
from interlock.ledger.retention import collect
from interlock.store.protocol import Store
from interlock.store.sqlite.store import open_store
from support import postgres_server
from support.harness import Bench
from support.installation import pip
from support.records import Record, walked

STORES: dict[str, Callable[[Path], Store]] = {"sqlite": open_store, "postgres": postgres_server.open_in}


class Desk:
    """Somebody at a terminal, with a session to sign and a folder for what is signed."""

    def __init__(self, bench: Bench) -> None:
        self.bench = bench
        self.session = walked(bench)
        self.key = bench.folder / "keys" / "signing.pem"

    def run(self, code: int, *arguments: str) -> Result:
        result = CliRunner().invoke(cli, [*arguments, "--data-dir", str(self.bench.folder)])
        assert result.exit_code == code, result.output
        return result

    def file(self, name: str) -> Path:
        return self.bench.folder / name

    def handed_over(self) -> list[str]:
        """Sign a session and a decision, and export the log: what a third party is given."""
        self.run(0, "signing", "create")
        files = [str(self.file(name)) for name in ("attestation.json", "receipt.json", "session.json")]
        self.run(0, "attest", self.session, "--out", files[0])
        self.run(0, "receipt", self.session, "ship", "--out", files[1])
        self.run(0, "export", self.session, "--output", files[2])
        return files


@pytest.fixture
def desk(bench: Bench) -> Desk:
    return Desk(bench)


def test_what_was_signed_is_verified_beside_its_bundle_and_in_the_store(desk: Desk) -> None:
    files = desk.handed_over()
    for subjects in (files, files[:2]):
        told = desk.run(0, "verify", *subjects).output
        assert told.count("signed by ed25519:") == 2
        assert "Verified:" in told
    told = json.loads(desk.run(0, "verify", *files, "--json").output)
    assert [(each["what"], each.get("wrong", [])) for each in told["verified"]] == [
        ("bundle", []),
        ("statement", []),
        ("statement", []),
    ]


def test_a_signing_key_is_private_and_is_refused_if_others_can_read_it(desk: Desk) -> None:
    desk.run(0, "signing", "create")
    assert desk.key.stat().st_mode & 0o777 == 0o600
    desk.run(5, "signing", "create")
    desk.key.chmod(0o640)
    for command in (("attest", desk.session), ("receipt", desk.session, "ship"), ("signing", "rotate")):
        assert "Others can read the signing key" in desk.run(1, *command).output
    desk.key.write_text("no key")
    desk.key.chmod(0o600)
    assert "holds no Ed25519 key" in desk.run(1, "attest", desk.session).output


def test_without_a_key_the_command_says_how_to_make_one(desk: Desk) -> None:
    assert "interlock signing create" in desk.run(3, "attest", desk.session).output


def test_without_the_library_the_command_says_what_to_install(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = desk.handed_over()
    monkeypatch.setitem(sys.modules, "cryptography.hazmat.primitives", None)
    for command in (("attest", desk.session), ("signing", "rotate"), ("verify", *files)):
        assert "pip install 'interlock[sign]'" in desk.run(1, *command).output


def test_after_a_rotation_both_keys_are_believed_and_the_new_one_signs_beside(desk: Desk) -> None:
    signed, *_ = desk.handed_over()
    first = desk.run(0, "signing", "show").output
    desk.run(0, "signing", "rotate")
    both = desk.run(0, "signing", "show").output
    assert both.endswith(first)
    assert len(public_keys(both.encode())) == 2
    desk.run(0, "verify", signed)
    desk.run(1, "verify", signed, "--at-least", "2")
    desk.run(0, "attest", "--add-signature", signed)
    desk.run(0, "verify", signed, "--at-least", "2")
    desk.run(5, "attest", "--add-signature", signed)


def test_a_signature_counts_only_by_a_key_that_the_reader_names(desk: Desk) -> None:
    signed, *_ = desk.handed_over()
    stranger = desk.file("stranger.pem")
    desk.run(0, "signing", "create", "--key", str(stranger))
    told = desk.run(1, "verify", signed, "--signed-by", str(stranger.with_suffix(".pub.pem"))).output
    assert "KEY_UNKNOWN" in told
    assert "cannot be read" in desk.run(1, "verify", signed, "--signed-by", signed).output


def test_a_statement_is_not_made_of_a_session_with_something_wrong(desk: Desk) -> None:
    desk.run(0, "signing", "create")
    ledger = desk.bench.ledger()
    with ledger.store.writing() as writer:
        writer.set_health(desk.session, "corrupt_tail", "a test says so")
    assert "is not signed" in desk.run(1, "attest", desk.session).output


def test_a_decision_that_is_not_there_is_answered_with_those_that_are(desk: Desk) -> None:
    desk.run(0, "signing", "create")
    assert "(ship), " in desk.run(3, "receipt", desk.session, "other").output
    desk.run(2, "attest")


def test_a_statement_outlives_its_session_by_the_head_that_is_kept(desk: Desk) -> None:
    signed, *_ = desk.handed_over()
    ledger = desk.bench.ledger()
    collect(ledger.store, desk.bench.clock() + 1, desk.bench.clock())
    assert "the head that was kept is the one that it names" in desk.run(0, "verify", signed).output
    with ledger.store.writing() as writer:
        tombstone = writer.tombstone(desk.session)
        assert tombstone is not None
        writer.set_tombstone(replace(tombstone, head_digest=bytes(32)))
    assert "LOG_OTHER" in desk.run(1, "verify", signed).output


@pytest.mark.parametrize("store", STORES)
def test_both_stores_attest_verify_and_keep_the_head(store: str, tmp_path: Path) -> None:
    bench = Bench(tmp_path, STORES[store])
    session, ledger = walked(bench), bench.ledger()
    record = Record.of(ledger, session, tmp_path)
    statements = {name: record.files[name] for name in ("attestation", "receipt")}
    assert verified_session(ledger, session).wrong == ()
    assert [each.wrong for each in verified_files(ledger, statements, record.keys)] == [(), ()]
    assert [each.wrong for each in judged_files(record.files, record.keys)] == [(), (), ()]
    assert json.loads(attestation(stored_log(ledger.store, session))) == record.statement
    record.statement["predicate"]["decisions"][0]["option"] = "no"
    (told,) = verified_files(ledger, {"attestation": record.files["attestation"]}, record.keys)
    assert "STATEMENT_DIFFERS" in told.wrong[0]
    assert collect(ledger.store, bench.clock() + 1, bench.clock(), waiting=True).total() == 1
    told, _ = verified_files(ledger, statements, record.keys)
    assert (told.wrong, "the one that it names" in told.notes[-1]) == ((), True)
    bench.close()


TAMPERINGS = {
    "a response is changed": (
        "UPDATE nodes SET response = {blob} WHERE node = 2",
        "response to attempt 0 on node 1",
    ),
    "a response is lost": (
        "UPDATE nodes SET response = {empty} WHERE node = 2",
        "response to attempt 0 on node 1",
    ),
    "a response is given to another attempt": ("UPDATE nodes SET attempt = 9 WHERE node = 2", "node 2"),
    "a command is changed": ("UPDATE commits SET body = {blob} WHERE first = 11", "digest_mismatch"),
    "a command is removed": ("DELETE FROM commits WHERE first = 11", "non_contiguous_indices"),
    "the last command is removed": (
        "DELETE FROM commits WHERE last = (SELECT max(last) FROM commits)",
        "missing events at the end",
    ),
    "the time of a command is changed": (
        "UPDATE commits SET recorded_at = 5 WHERE first = 11",
        "digest_mismatch",
    ),
    "the head is changed": ("UPDATE sessions SET head_digest = {blob}", "missing events at the end"),
    "a node is removed": ("DELETE FROM nodes WHERE node = 3", "node 3"),
    "the status of a run is changed": ("UPDATE runs SET status = 'complete'", "runs"),
    "the title is changed": ("UPDATE sessions SET title = 'Fine'", "session row"),
    "the workflow is removed": ("DELETE FROM contents", "pinned workflow"),
}


def tampered(store: str, folder: Path, statement: str) -> None:
    """Write to a store as somebody who can."""
    if store == "postgres":
        blob, empty = "decode('00', 'hex')", "decode('', 'hex')"
        postgres_server.shared_server().execute(
            "SET search_path = kit; " + statement.format(blob=blob, empty=empty)
        )
        return
    connection = apsw.Connection(str(folder / "interlock.db"))
    connection.execute("DROP TRIGGER commits_stay")
    connection.execute(statement.format(blob="x'00'", empty="x''"))
    connection.close()


@pytest.mark.parametrize("store", STORES)
def test_what_was_changed_in_a_store_is_named(store: str, tmp_path: Path) -> None:
    for number, (name, (statement, named)) in enumerate(TAMPERINGS.items()):
        bench = Bench(tmp_path / str(number), STORES[store])
        bench.judges = False
        session, ledger = walked(bench), bench.ledger()
        assert verified_session(ledger, session).wrong == ()
        bench.pause()
        tampered(store, bench.folder, statement)
        wrong = verified_session(bench.ledger(), session).wrong
        assert named in "; ".join(wrong), name
        bench.close()


@pytest.mark.slow
def test_the_verifier_runs_where_interlock_is_not_installed(desk: Desk, tmp_path: Path) -> None:
    """The files and the verifier are all that another machine gets, with Python and `cryptography`."""
    files = desk.handed_over()
    there = tmp_path / "there"
    there.mkdir()
    desk.run(0, "attest", "--verifier", "--out", str(there / "verify_interlock.py"))
    (there / "signer.pub.pem").write_text(desk.run(0, "signing", "show").output)
    for file in files:
        shutil.copy(file, there)
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(there / "venv")], check=True)
    python = there / "venv" / "bin" / "python"
    pip("--python", str(python), "install", "--no-compile", "cryptography")
    names = [Path(file).name for file in files]
    command = [str(python), "-I", "verify_interlock.py", "--key", "signer.pub.pem", *names]
    absent = subprocess.run(
        [str(python), "-c", "import interlock"], cwd=there, capture_output=True, check=False
    )
    assert b"ModuleNotFoundError" in absent.stderr
    sound = subprocess.run(command, cwd=there, capture_output=True, text=True, check=False)
    assert (sound.returncode, sound.stdout.count("ok ")) == (0, 3), sound.stdout + sound.stderr
    bundle = there / "session.json"
    bundle.write_text(bundle.read_text().replace("Looks right.", "Looks wrong."))
    forged = subprocess.run([*command, "--json"], cwd=there, capture_output=True, text=True, check=False)
    assert forged.returncode == 1
    assert "LOG_CHAIN" in json.loads(forged.stdout)[0]["wrong"][0]
