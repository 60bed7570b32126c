# Two commands on a fresh machine: `make demo` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# bytecode is written where a module is first imported, not for all that scikit-learn and polars hold:
# 8 of 19 seconds of an installation
PIP := $(BIN)/python -m pip --disable-pip-version-check install --quiet --no-compile --constraint constraints.txt

# The papers' data sets, where a folder of them stands beside the project.
ifneq ($(wildcard ../shared/data/INDEX.csv),)
export LACONIC_DATA ?= $(abspath ../shared/data)
endif

.PHONY: demo test lint bench stress stress-quick docs reproduce clean

demo: $(VENV)/core.done
	$(BIN)/laconic demo --out laconic-demo

test: $(VENV)/test.done
	$(BIN)/python -m pytest -n 2 --dist worksteal

lint: $(VENV)/test.done
	$(BIN)/ruff check src tests benchmarks stress examples
	$(BIN)/ruff format --check src tests benchmarks stress examples
	$(BIN)/mypy

# tables beside the stored ones; fails where a ratio to a peer fell by 30 %. ONLY="votes:solve --store"
# peers pin other versions (Khiops wants scikit-learn < 1.9), so they have an environment of their own;
# FasterRisk pins numpy 1 and pandas 1.5 but runs with newer ones: it is installed without its pins
bench: .venv-bench/bench.done
	.venv-bench/bin/python -m benchmarks $(ONLY)

# inputs that try to break a promise; prints what came of them
stress: $(VENV)/test.done
	$(BIN)/python -m stress $(PARTS) $(if $(MINUTES),--minutes $(MINUTES)) --resume stress/run.json

# some cases of each part
stress-quick: $(VENV)/test.done
	$(BIN)/python -m stress --quick

# the papers' numbers beside ours from few draws; the full run is `laconic reproduce all`
reproduce: $(VENV)/core.done
	$(BIN)/laconic reproduce all --quick

docs: $(VENV)/docs.done
	$(BIN)/python -m sphinx -W -b html docs docs/_build/html

clean:
	rm -rf $(VENV) .venv-bench docs/_build laconic-demo

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

# one stamp per extra: installed again only when the dependencies change
$(VENV)/core.done: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(PIP) --editable .
	touch $@

$(VENV)/%.done: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(PIP) --editable '.[$*]'
	touch $@

.venv-bench/bench.done: pyproject.toml
	$(PYTHON) -m venv .venv-bench
	.venv-bench/bin/python -m pip --disable-pip-version-check install --quiet --editable '.[bench]'
	.venv-bench/bin/python -m pip --disable-pip-version-check install --quiet --no-deps fasterrisk==0.1.10
	touch $@
