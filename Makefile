# The two commands: `make run` shows Interlock at work, `make test` checks everything that CI checks.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
LOCK   := requirements-dev.lock
PYTEST := $(BIN)/python -m pytest -n auto

# Tests start hundreds of processes: without written bytecode each of them would compile the source again.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: run test quick lint bench proof ready lock clean

run: ready
	@$(BIN)/interlock demo

test: lint
	@$(PYTEST)

quick: ready
	@$(PYTEST) -m "not slow"

lint: ready
	@$(BIN)/ruff format --check -q .
	@$(BIN)/ruff check -q .
	@$(BIN)/mypy --no-error-summary

bench: ready
	@$(BIN)/python -m bench

# The long figures: laws searched at random, kills, crashes of PostgreSQL, histories, mixed load, disk faults, byte flips, search, mutants, sampled mutants, growth; hours.
proof: ready
	@$(BIN)/python -m tools.proof

ready:
	@command -v $(PYTHON) >/dev/null || { echo "$(PYTHON) is not installed; Interlock needs Python 3.11 or newer." >&2; exit 1; }
	@$(PYTHON) tools/set_up.py $(VENV) "$(or $(MAKECMDGOALS),run)"

# Lock the newest versions that pyproject.toml and the package.json files of tests/node allow.
lock: ready
	@rm -rf build/lock
	@$(BIN)/python -m venv build/lock
	@build/lock/bin/python -m pip install -q --disable-pip-version-check -e '.[dev]'
	@echo '# The versions that `make` installs into .venv, on every Python. Written by `make lock`.' > $(LOCK)
	@build/lock/bin/python -m pip freeze --exclude-editable >> $(LOCK)
	@rm -rf build/lock
	@for folder in tests/node tests/node/claude tests/node/packaging; do \
		(cd $$folder && rm -f package-lock.json && npm install --package-lock-only --loglevel=error) || exit 1; \
	done

clean:
	rm -rf $(VENV) build
