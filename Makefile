# Every target does its own set-up, from nothing but Python 3.11+, make and git.

VENV  := .venv
BIN   := $(VENV)/bin
READY := $(VENV)/.synced
SYNC  := UV_PYTHON_DOWNLOADS=never UV_PROJECT_ENVIRONMENT=$(VENV) $(BIN)/uv sync --locked --inexact --quiet --compile-bytecode
OUT   := out/wiffle

# The first interpreter that is new enough; a python3 that is too old does not hide a newer one beside it.
NEW_ENOUGH := import sys, ensurepip; sys.exit(sys.version_info < (3, 11))
PYTHONS    := $(PYTHON) python3 python3.14 python3.13 python3.12 python3.11

.DEFAULT_GOAL := help
.PHONY: help wiffle test bench docs clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-8s %s\n", $$1, $$2}' Makefile

wiffle: $(READY) ## calibrate the wiffle balls: a table here, a figure on disk
	@$(BIN)/l2calib calibrate wiffle --method gb-l2 --method koh --out $(OUT)
	@echo "The figure is $(OUT)/calibration.png (and .svg)."

test: $(READY) ## style, types, layers and tests
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/pytest -n 2 --durations=30

bench: $(READY) ## speed against MCMC, as a table of ratios in the README
	$(BIN)/python -m benchmarks --write

docs: $(READY) ## build the guide: docs/_build/index.html
	$(BIN)/sphinx-build -W --keep-going -q -b html docs docs/_build

clean: ## remove what make has made
	rm -rf $(VENV) out docs/_build

$(BIN)/uv:
	@for python in $(PYTHONS); do \
	  if $$python -c '$(NEW_ENOUGH)' >/dev/null 2>&1; then found=$$python; break; fi; \
	done; \
	if [ -z "$$found" ]; then \
	  echo "l2calib needs Python 3.11 or newer with its venv module: none was found on the PATH (name one with make PYTHON=...)." >&2; \
	  exit 1; \
	fi; \
	$$found -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check uv

$(READY): $(BIN)/uv uv.lock pyproject.toml
	@$(SYNC)
	@$(BIN)/python -m compileall -q src # uv compiles what it installs; this is installed where it is
	@touch $@
