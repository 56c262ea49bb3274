# Two commands do everything: `make lab` runs the main job, `make test` runs the tests.
# ARGS reaches the lab:  make lab ARGS="--backend process"
# PROCESSES share the quick tests: one more than there are cores, as tests also wait for services.
# The slow ones wait most of their time, and are shared by twice as many.
# Tests are either QUICK or SLOW; of both, those that measure (`alone`) run one by one, at the end.
# Where few files have tests of a group, no others are read, unless ARGS names some:
# tests/setup/test_groups.py says if the text of a file does not tell that it has such a test.
.DEFAULT_GOAL := help
.PHONY: help setup lab notebook test slow check docs lock clean
ARGS ?=
NOTEBOOKS ?= notebooks
PROCESSES ?= $(shell expr $$(getconf _NPROCESSORS_ONLN) + 1)
WAITING ?= $(shell expr 2 \* $$(getconf _NPROCESSORS_ONLN) + 1)
BIN := .venv/bin
SLOW := slow or docker or browser
QUICK := not ($(SLOW))
TESTS := $(BIN)/python -m pytest
shared_by = --numprocesses $(1) --dist worksteal
files = $(if $(findstring tests/,$(ARGS)),,$(sort $(shell grep -rlE --include='test_*.py' '$(1)' tests)))
OF_ALONE = $(call files,mark\.alone)
OF_SLOW = $(call files,mark\.(slow|docker|browser)|backend_name)
LOCK = $(BIN)/python -I perflab/host/installer.py pip compile $(ARGS) --quiet --universal \
  --python-version 3.11 --generate-hashes --no-header --no-annotate --no-emit-index-url \
  --no-emit-find-links

help: ## show this help
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 18

setup: ## make the environment in .venv (quick when it is there)
	@sh scripts/setup.sh

lab: setup ## run the core experiments; figures, notebooks and verdicts at the end
	@$(BIN)/perflab lab $(ARGS)

# The first free port from 8888 on; a random token; loopback only; it asks nobody for updates or
# news, and starts the kernel that a notebook names without asking. Its root is the folder above the
# notebooks, so that links to documents and figures open.
notebook: setup ## open JupyterLab, in which the notebooks are run by hand
	@$(BIN)/jupyter lab --ServerApp.ip=127.0.0.1 $(if $(filter 0,$(shell id -u)),--allow-root) \
	  --LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate \
	  --LabApp.app_settings_dir="$(CURDIR)/scripts/jupyterlab" \
	  --ServerApp.root_dir="$(abspath $(NOTEBOOKS)/..)" "$(abspath $(NOTEBOOKS))/00_start.ipynb" $(ARGS)

docs: setup ## build the documents as a site, with the notebooks drawn from the reference
	@$(BIN)/python scripts/site.py build/site

check: setup ## lint, format, types
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/nbstripout --verify --keep-id notebooks/*.ipynb

# Tests start hundreds of processes: what they import is compiled once, also where that is off.
test slow: export PYTHONDONTWRITEBYTECODE :=
test: check ## check, then the quick tests; some start services, none needs Docker or a browser
	@failed=0; \
	$(TESTS) -m "($(QUICK)) and not alone" $(call shared_by,$(PROCESSES)) $(ARGS) || failed=1; \
	$(TESTS) -m "($(QUICK)) and alone" $(OF_ALONE) $(ARGS) || failed=1; \
	exit $$failed

slow: setup ## all other tests: of runs, stacks, notebooks and kills, of Docker and in a browser
	@failed=0; \
	$(TESTS) -m "($(SLOW)) and not alone" $(call shared_by,$(WAITING)) $(OF_SLOW) $(ARGS) || failed=1; \
	$(TESTS) -m "($(SLOW)) and alone" $(OF_ALONE) $(ARGS) || failed=1; \
	exit $$failed

lock: setup ## pin again what pyproject.toml and services/*/requirements.in ask for
	@$(LOCK) --all-extras pyproject.toml -o requirements.lock
	@$(LOCK) --group compiler -o compiler.lock
	@$(LOCK) --group site -o scripts/site.lock
	@for asked in services/*/requirements.in; do \
	  $(LOCK) "$$asked" -o "$${asked%.in}.txt" || exit 1; done
	@$(BIN)/python scripts/conda_environment.py

clean: ## remove the environment and caches; recordings stay
	rm -rf .venv build .mypy_cache .ruff_cache .pytest_cache .hypothesis
