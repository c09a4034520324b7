"""Make the virtual environment complete, and say what is being done while that takes time.

It runs under Python 3.7 and newer, so that a Python too old for Interlock gets a message and not a traceback.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LOCK = ROOT / "requirements-dev.lock"
OLDEST = (3, 11)
NAMES = ["python3.14", "python3.13", "python3.12", "python3.11"]
EVERY = 10
PAUSE = 0.3


def main(venv: Path, goal: str) -> int:
    """Set up what is missing; return the exit code."""
    stamp = venv / ".ready"
    recorded = stamp.read_text().splitlines() if stamp.is_file() else []
    usable = recorded[:1] == [str(venv)] and is_new_enough(str(venv / "bin" / "python"))
    if usable and recorded[1:] == [digest()]:
        return 0
    if not usable and sys.version_info < OLDEST:
        return too_old(goal)
    if not (usable or create(venv)) or not install(venv):
        return 1
    stamp.write_text(f"{venv}\n{digest()}\n")  # a virtual environment cannot be moved
    return 0


def digest() -> str:
    """Identify what is to be installed."""
    return hashlib.sha256((ROOT / "pyproject.toml").read_bytes() + LOCK.read_bytes()).hexdigest()


def is_new_enough(python: str) -> bool:
    check = f"import sys; sys.exit(sys.version_info < {OLDEST})"
    try:
        return subprocess.run([python, "-c", check], capture_output=True, check=False).returncode == 0
    except OSError:
        return False


def too_old(goal: str) -> int:
    found = next((name for name in NAMES if shutil.which(name) and is_new_enough(name)), None)
    say(f"Interlock needs Python 3.11 or newer, but {sys.executable} is Python {version()}.")
    say(f"Name a newer one{'' if found else ' when it is installed'}: make PYTHON={found or NAMES[2]} {goal}")
    return 1


def create(venv: Path) -> bool:
    say(f"[1/3] Creating {venv.name} with Python {version()}")
    return subprocess.run([sys.executable, "-m", "venv", "--clear", str(venv)], check=False).returncode == 0


def install(venv: Path) -> bool:
    """Install the locked packages and Interlock itself; pip's own words are shown only if it fails."""
    total = sum("==" in line for line in LOCK.read_text().splitlines())
    say(f"[2/3] Downloading {total} packages")
    pip = [str(venv / "bin" / "python"), "-m", "pip", "install", "--disable-pip-version-check"]
    command = [*pip, "--progress-bar", "off", "-c", str(LOCK), "-e", f"{ROOT}[dev]"]
    log = venv / "pip.log"
    with log.open("w") as output, subprocess.Popen(command, stdout=output, stderr=output) as process:
        watch(process, log, venv, total)
    if process.returncode != 0:
        say(log.read_text(errors="replace"))
        say("pip could not install the packages; what it printed is above.")
    return process.returncode == 0


def watch(process: subprocess.Popen[bytes], log: Path, venv: Path, total: int) -> None:
    """Say how far pip has come at every tenth package, while it downloads and while it installs."""
    told, installing = 0, False
    while process.poll() is None:
        time.sleep(PAUSE)
        lines = log.read_text(errors="replace").splitlines()
        if not installing and any(line.startswith("Installing collected packages") for line in lines):
            say("[3/3] Installing them")
            told, installing = 0, True
        downloaded = sum(line.startswith(("Collecting ", "Processing ")) for line in lines)
        installed = len(list(venv.glob("lib/python*/site-packages/*.dist-info")))
        count = installed if installing else downloaded
        if told + EVERY <= count < total:
            told = count
            say(f"      {count} of {total}")


def version() -> str:
    return ".".join(map(str, sys.version_info[:3]))


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]).resolve(), *sys.argv[2:3] or ["run"]))
