# The two commands: `make run` shows Interlock at work, `make test` checks everything that CI checks.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PYTEST := $(BIN)/python -m pytest -n auto

.PHONY: run test quick lint bench clean

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

clean:
	rm -rf $(VENV)

$(VENV)/.ready: pyproject.toml
	@echo "Setting up $(VENV) (once)…" >&2
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install -q --disable-pip-version-check -e '.[dev]'
	@touch $@
