# Everything happens in .venv; nothing outside this folder is changed.
#
#   make demo              remember this repository, ask about it, leave the server running
#   make demo DEMO_EXIT=1  the same, and stop at the end
#   make run               the server on its own
#   make test lint         what a change has to pass
#
# PYTHON chooses the interpreter for .venv, 3.11 or later.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

DEMO_PORT ?= 8477
DEMO_DATA ?= data/demo
DEMO_EXIT ?=
# Further options, such as: make test PYTEST="-k recall"
PYTEST ?=
# Labelled sets for `make bench`, see docs/retrieval.md; HIVEMEM_SHARED_DIR names their parent folder.
BENCH_DIR ?= $(or $(HIVEMEM_SHARED_DIR),../shared)/bench
BENCH_SETS ?= $(sort $(notdir $(patsubst %/,%,$(wildcard $(BENCH_DIR)/*/))))
BENCH_QUERIES ?= 100
# Of these, the ones whose texts fill the comparison with other engines; generated texts when there are none.
BENCH_TEXTS ?= $(wildcard $(addprefix $(BENCH_DIR)/,locomo realtalk))
# Other engines live in an environment of their own; TXTAI=1 adds txtai, which brings torch.
PEERS := .venv-peers
TXTAI ?=

SOURCES := src tests benchmarks demo

.DEFAULT_GOAL := help
# Two installations into one .venv at a time would spoil it.
.NOTPARALLEL:
.PHONY: chromium help install demo run test lint format golden docs bench peers soak clean

help: ## print this list
	@awk -F ':.*## ' '/^[a-z]+:.*## /{printf "  make %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

install: $(VENV)/.runtime ## create .venv and install the package

demo: $(VENV)/.runtime ## remember this repository, ask about it, serve it
	@$(BIN)/python -m demo --data-dir "$(DEMO_DATA)" --port "$(DEMO_PORT)" $(if $(filter-out 0,$(DEMO_EXIT)),--exit)

run: $(VENV)/.runtime ## run the server on your own memory
	@$(BIN)/hivemem serve

test: $(VENV)/.test chromium ## run all tests but the long ones
	$(BIN)/python -m pytest $(PYTEST)

# The pages are tested in Debian's Chromium. Elsewhere install one, or these tests are skipped and counted.
chromium:
	@command -v chromium >/dev/null || { test "$$(id -u)" = 0 && command -v apt-get >/dev/null && \
		{ apt-get -qq update; DEBIAN_FRONTEND=noninteractive apt-get -qq install -y chromium; } >/dev/null 2>&1; } || \
		echo "chromium is not installed; the tests of pages will be skipped"

soak: $(VENV)/.test ## run the long tests
	$(BIN)/python -m pytest -m soak $(PYTEST)

lint: $(VENV)/.lint ## check style, format and types
	$(BIN)/ruff check $(SOURCES)
	$(BIN)/ruff format --check $(SOURCES)
	$(BIN)/pyright --pythonpath $(BIN)/python

format: $(VENV)/.lint ## rewrite the sources in the house format
	$(BIN)/ruff check --fix-only --exit-zero --quiet $(SOURCES)
	$(BIN)/ruff format $(SOURCES)

golden: $(VENV)/.test ## rewrite the golden files; review the difference
	$(BIN)/python -m tests.golden.rewrite
	@git --no-pager diff --stat -- tests/golden

docs: $(VENV)/.runtime ## rewrite the generated pages
	$(BIN)/hivemem config reference > docs/operating/settings.md.new
	mv docs/operating/settings.md.new docs/operating/settings.md

bench: $(VENV)/.bench ## measure speed, and quality on labelled sets; takes long
	$(BIN)/python benchmarks/engine/vectors.py 25000 64000
	$(BIN)/python benchmarks/latency/recall.py --small 2000 --large 64000 --queries 60
	$(BIN)/python benchmarks/latency/write.py --stores 100 --bulk 1024 --rounds 3
	$(BIN)/python benchmarks/load/clients.py --nodes 2000 --seconds 20
	$(BIN)/python benchmarks/engine/scale.py
	$(BIN)/python benchmarks/scale/recall.py
	$(BIN)/python benchmarks/scale/writes.py
	$(BIN)/python benchmarks/scale/pressure.py
	$(BIN)/python benchmarks/peers/side_by_side.py \
		$(if $(BENCH_TEXTS),--data $(BENCH_TEXTS) --quality $(firstword $(BENCH_TEXTS)))
	$(BIN)/python benchmarks/plots.py
	@test -n "$(BENCH_SETS)" || echo "no labelled sets in $(BENCH_DIR), so quality is not measured; set BENCH_DIR"
	@for set in $(BENCH_SETS); do \
		$(BIN)/python benchmarks/quality/run.py "$(BENCH_DIR)/$$set" --queries $(BENCH_QUERIES) || exit 1; \
	done

peers: $(PEERS)/.installed $(if $(filter-out 0,$(TXTAI)),$(PEERS)/.txtai) ## install the engines that make bench compares with

clean: ## remove .venv and caches, but no data
	rm -rf $(VENV) $(PEERS) .pytest_cache .ruff_cache .hypothesis

# Installing. A stamp says that .venv holds what pyproject.toml asks for, so that a second run costs nothing.

$(VENV)/.pip: | $(VENV)/bin/python
	@# Older versions do not know dependency groups.
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade "pip>=25.1"
	@touch $@

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo "hivemem needs Python 3.11 or later; name one with: make PYTHON=python3.12 ..." >&2; exit 1; }
	@$(PYTHON) -m venv $(VENV) || { \
		echo "the module venv is missing; on Debian and Ubuntu install the package python3-venv" >&2; \
		rm -rf $(VENV); exit 1; }

$(VENV)/.runtime: pyproject.toml $(VENV)/.pip
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[oidc,postgres,telemetry]'
	@touch $@

$(VENV)/.test $(VENV)/.lint $(VENV)/.bench: $(VENV)/.%: pyproject.toml $(VENV)/.runtime
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --group $*
	@touch $@

$(PEERS)/.installed: benchmarks/peers/requirements.txt
	@$(PYTHON) -m venv $(PEERS)
	$(PEERS)/bin/python -m pip install --quiet --disable-pip-version-check --requirement $<
	@touch $@

$(PEERS)/.txtai: benchmarks/peers/requirements-txtai.txt $(PEERS)/.installed
	$(PEERS)/bin/python -m pip install --quiet --disable-pip-version-check --requirement $<
	@touch $@
