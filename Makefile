# The two commands: `make run` shows Interlock at work, `make test` checks everything that CI checks.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
LOCK   := requirements-dev.lock
PYTEST := $(BIN)/python -m pytest -n auto

.PHONY: run test quick lint bench lock clean

run: $(VENV)/.ready
	@$(BIN)/interlock demo

test: $(VENV)/.ready lint
	@$(PYTEST)

quick: $(VENV)/.ready
	@$(PYTEST) -m "not slow"

lint: $(VENV)/.ready
	@$(BIN)/ruff format --check -q .
	@$(BIN)/ruff check -q .
	@$(BIN)/mypy --no-error-summary

bench: $(VENV)/.ready
	@$(BIN)/python -m bench.heart

# Lock the newest versions that pyproject.toml and tests/node/package.json allow.
lock:
	@rm -rf build/lock
	@$(PYTHON) -m venv build/lock
	@build/lock/bin/python -m pip install -q --disable-pip-version-check -e '.[dev]'
	@echo '# The versions that `make` installs into .venv, on every Python. Written by `make lock`.' > $(LOCK)
	@build/lock/bin/python -m pip freeze --exclude-editable >> $(LOCK)
	@rm -rf build/lock
	@cd tests/node && rm -f package-lock.json && npm install --package-lock-only --loglevel=error

clean:
	rm -rf $(VENV) build

$(VENV)/.ready: pyproject.toml $(LOCK)
	@echo "Setting up $(VENV) (once)…" >&2
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install -q --disable-pip-version-check -c $(LOCK) -e '.[dev]'
	@touch $@
