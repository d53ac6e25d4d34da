# The words a newcomer needs. Everything lives in .venv, made on first use from exact pins; a second call installs nothing.

PYTHON ?= python3
ARGS ?=
VENV := .venv
PY := $(VENV)/bin/python

# The name of a stamp carries the checksum of what was installed, so a changed pin asks for a new install and nothing else does.
RUN_READY := $(VENV)/.run-$(shell cksum < requirements.txt | cut -d' ' -f1)
DEV_READY := $(VENV)/.dev-$(shell cksum < requirements-dev.txt | cut -d' ' -f1)

.DEFAULT_GOAL := help
.PHONY: help run install worker demo test test-long check fix bench bench-all pictures lock clean
MAKEFLAGS += --no-print-directory

# uv is fast where it works; it trusts the certificates that the system trusts. pip does the same work without it.
with_uv = UV_SYSTEM_CERTS=1
# gcli is a client's program: its libraries stand in its own package, and it runs from this folder, with nothing to build.
gcli = '\#!/bin/sh\nPYTHONPATH="%s" exec "%s/$(PY)" -P -m metalake_client "$$@"\n' "$(CURDIR)" "$(CURDIR)"
# The hashes are of every file of a release: a package that differs from what was locked is not installed.
pinned = --quiet --no-deps --require-hashes
compile = $(with_uv) $(VENV)/bin/uv pip compile --quiet --no-header --python-version 3.11 --generate-hashes

help: ## Show these words
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' Makefile

run: $(RUN_READY) ## Start Metalake (http://127.0.0.1:8090 unless METALAKE_HOST and METALAKE_PORT say otherwise)
	@exec $(PY) manage.py serve

install: $(RUN_READY) ## Make the environment that run and worker use, with .venv/bin/gcli, and start nothing

worker: $(RUN_READY) ## Start a Celery worker; needs METALAKE_BROKER_URL and METALAKE_DATABASE_URL
	@exec $(PY) manage.py worker

demo: $(DEV_READY) ## Fill a metalake with example data through the public API
	@$(PY) -m pipelines.demo $(ARGS)

test: $(DEV_READY) ## Run the tests on SQLite, then those of the store on PostgreSQL; ARGS="tests/authz -k grant" narrows
	@$(PY) -m tests.run $(ARGS)

test-long: $(DEV_READY) ## Run the tests that are too long for every day
	@$(PY) -m tests.run --long $(ARGS)

check: $(DEV_READY) ## Lint, formatting, types, imports between folders, missing migrations
	@$(PY) -m ruff check . || { echo "ruff found problems: 'make fix' repairs what it can."; exit 1; }
	@$(PY) -m ruff format --check --quiet . || { echo "Some files are not formatted: 'make fix' formats them."; exit 1; }
	@$(PY) -m mypy . || { echo "mypy found type errors, listed above."; exit 1; }
	@$(VENV)/bin/lint-imports --no-cache \
		|| { echo "An import crosses the contracts in pyproject.toml, see above."; exit 1; }
	@DJANGO_SETTINGS_MODULE=tests.settings $(PY) manage.py makemigrations --check --dry-run \
		|| { echo "The models differ from the migrations: run '$(PY) manage.py makemigrations'."; exit 1; }

fix: $(DEV_READY) ## Repair and format what ruff can
	@$(PY) -m ruff check --fix --quiet . ; $(PY) -m ruff format .

bench: $(DEV_READY) ## Measure beside other catalogs and print one table; ARGS="--short" takes 10 minutes, --json FILE writes it
	@$(PY) -m benchmarks.rivals $(ARGS)

bench-all: $(DEV_READY) ## Run every program in benchmarks/, whatever the others found; ARGS go to each of them
	@missed=; for program in $$(grep -lE "^    finish\(\)" benchmarks/*.py); do \
		name=$$(basename $$program .py); echo "== $$name"; \
		$(PY) -m "benchmarks.$$name" $(ARGS) || missed="$$missed $$name"; \
	done; test -z "$$missed" || { echo "These missed a goal or failed:$$missed"; exit 1; }

pictures: $(DEV_READY) ## Take the README's pictures of the pages anew, on a server of their own
	@$(PY) -m tests.pictures

lock: $(DEV_READY) ## Resolve requirements*.in into exact pins with their hashes; what runs gets the pins that are tested
	@$(VENV)/bin/uv --version >/dev/null 2>&1 || $(PY) -m pip install $(pinned) -r requirements-uv.txt
	@$(compile) $(ARGS) --override requirements-overrides.txt requirements-dev.in metalake_client/pyproject.toml -o requirements-dev.txt
	@cp requirements-dev.txt requirements.txt # pins already in the output are kept
	@$(compile) requirements.in metalake_client/pyproject.toml -o requirements.txt
	@$(compile) $(ARGS) requirements-uv.in -o requirements-uv.txt

clean: ## Remove the environment and every cache; keeps var/, the data
	@rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

# The pins of the tests contain the pins of the server, so installing the former readies both.
$(RUN_READY):
	$(call install,requirements.txt)
	@rm -f $(VENV)/.run-* $(VENV)/.dev-*; touch $@

$(DEV_READY):
	$(call install,requirements-dev.txt)
	@rm -f $(VENV)/.run-* $(VENV)/.dev-*; touch $@ $(RUN_READY)

define install
	@test -x $(PY) || { $(make_venv); }
	@$(PY) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "$(VENV) was made with a Python older than 3.11: run 'make clean', then call make with PYTHON=/path/to/python3.11."; exit 1; }
	@echo "Installing $(1) into $(VENV) (once; a minute or two the first time)"
	@$(with_uv) uv pip install --python $(PY) $(pinned) -r $(1) 2>/dev/null \
		|| $(with_uv) $(VENV)/bin/uv pip install --python $(PY) $(pinned) -r $(1) 2>/dev/null \
		|| { $(PY) -m pip install $(pinned) -r requirements-uv.txt >/dev/null 2>&1 \
			&& $(with_uv) $(VENV)/bin/uv pip install --python $(PY) $(pinned) -r $(1) 2>/dev/null; } \
		|| $(PY) -m pip install --disable-pip-version-check $(pinned) -r $(1) \
		|| { echo "Could not install $(1), see above: is a Python package index reachable from here, and are its files the ones that were locked? Nothing else was changed; call make again."; exit 1; }
	@printf $(gcli) > $(VENV)/bin/gcli && chmod +x $(VENV)/bin/gcli
endef

define make_venv
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null \
		|| { echo "Metalake needs Python 3.11 or newer, and '$(PYTHON)' is not: install one, or call make with PYTHON=/path/to/python3.11."; exit 1; }; \
	if uv --version >/dev/null 2>&1; then uv venv --quiet --clear --seed --python "$$(command -v $(PYTHON))" $(VENV); \
	elif $(PYTHON) -c 'import ensurepip, venv' 2>/dev/null; then $(PYTHON) -m venv --clear $(VENV); \
	else echo "'$(PYTHON)' cannot make virtual environments: install its venv module (Debian, Ubuntu: apt install python3-venv) or uv."; exit 1; fi \
		|| { echo "Could not create $(VENV); is the folder writable?"; exit 1; }
endef
