# Targets for users and contributors; `make` alone lists them.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/installed
TYPECHECK := build/typecheck
# What the import package is made of: the repository root's modules and its folders that are packages.
PACKAGE_PARTS = $(wildcard *.py) py.typed $(patsubst %/__init__.py,%,$(wildcard */__init__.py))

.PHONY: help setup demo test test-all lint format check docs bench constraints rollouts results pictures lexicon clean

help: ## list the targets
	@sed -nE 's/^([a-z-]+):[^#]*## (.*)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 22

setup: $(INSTALLED) ## create .venv and install everything, with pinned versions

$(INSTALLED): pyproject.toml constraints.txt .ci/setup
	@.ci/setup $(VENV)
	@touch $@

demo: setup ## run the demonstration anew and write its report to demo/
	@rm -rf demo
	$(BIN)/conflictvla demo --out demo

test: setup ## run the tests but for the exhaustive ones
	$(BIN)/pytest -n 2 --dist loadscope -m "not slow"

test-all: setup ## run every test
	$(BIN)/pytest -n 2 --dist loadscope

lint: setup ## check style, types and the order of the floors
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	@# A clone's folder may have any name, so mypy reads the package through links that bear the right one.
	@rm -rf $(TYPECHECK) && mkdir -p $(TYPECHECK)/conflictvla
	@for part in $(PACKAGE_PARTS); do ln -s "$(CURDIR)/$$part" "$(TYPECHECK)/conflictvla/$$part"; done
	MYPYPATH=$(TYPECHECK) $(BIN)/mypy --cache-dir build/mypy_cache -p conflictvla -p tests | sed 's#$(TYPECHECK)/conflictvla/##'
	$(BIN)/lint-imports --no-logo

format: setup ## let ruff fix and format what it can
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

check: lint test ## what CI runs

docs: setup ## build the site into build/site; any warning is an error
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --config-file docs/mkdocs.yml

bench: setup ## measure, and write build/benchmarks.json
	$(BIN)/pytest -n 0 -o python_files='bench_*.py' tests/benchmarks

constraints: setup ## resolve constraints.txt anew, keeping pins that still fit
	$(BIN)/uv pip compile --quiet --universal --python-version 3.12 --all-extras pyproject.toml \
	  --no-header --no-annotate --no-emit-index-url --no-emit-find-links --output-file constraints.txt

rollouts: setup ## record the packaged rollouts anew, after the tasks have changed
	rm -rf build/rollouts
	$(BIN)/conflictvla rollouts build --out build/rollouts --per-cell 1 --compact
	rm -rf dataset_cards/rollouts && mv build/rollouts dataset_cards/rollouts

# The scripted agents that mark the scale of the leaderboard. CASES=--all-cases records every case, not the lite selection.
SCALE := refuse,detect_late,redirect,hesitate,noisy,fail_persist,persist
CASES :=
STATES := 0-4

results: setup ## record the lite cases anew, and keep what the leaderboard shows without --data (hours)
	$(BIN)/conflictvla rollouts build --out build/release --agents $(SCALE) --init-states $(STATES) $(CASES) \
	  --workers 2 --verify 50
	rm -rf dataset_cards/leaderboard && mkdir dataset_cards/leaderboard
	mv build/release/results build/release/verified dataset_cards/leaderboard

pictures: setup ## draw the visual probes' picture of the documentation anew
	$(BIN)/conflictvla tasks pictures --out docs/pages/figures/visual_probes.jpg --size 192

lexicon: setup ## make the lexicon anew from WordNet 3.0's files in WORDNET=DIR
	@mkdir -p build
	$(BIN)/python -m conflictvla.builders.lexicon.wordnet "$(WORDNET)" > build/lexicon.json
	mv build/lexicon.json toolkit/language/lexicon.json

clean: ## remove the environment and all that was built
	rm -rf $(VENV) build dist demo conflictvla.egg-info .mypy_cache .ruff_cache .pytest_cache .import_linter_cache
