PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: help demo test test-slow browser check fuzz mutants bench docs site clean

help:
	@echo "make demo       install, train a small model, write runs/demo/report.html (about three minutes)"
	@echo "make test       install, check style, types and layers, run the default tests (under ten minutes)"
	@echo "make test-slow  the tests that are left out of the default suite"
	@echo "make test-oldest  the default tests with the oldest packages that the library allows"
	@echo "make wheel      dist/: what people install; a slow test installs it and runs the demo"
	@echo "make fuzz       every command with ten thousand spoilt inputs; stopped, it goes on the next time"
	@echo "make mutants    change one expression at a time in a copy, and see whether a test minds; it goes on too"
	@echo "make bench      speed beside what you would otherwise run"
	@echo "make docs       the pages of docs/ that are made from the code"
	@echo "make site       the documentation as a site, notebooks run, in site/ (a few minutes)"

demo: $(VENV)/installed
	$(BIN)/unweave demo

# what tests compile is kept, whatever the shell says: they start many processes
test: $(VENV)/installed-dev check browser
	PYTHONDONTWRITEBYTECODE= OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 -m "not slow" --durations=10

test-slow: $(VENV)/installed-dev browser
	PYTHONDONTWRITEBYTECODE= OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 -m slow --durations=20

# the explorer's page is tested in chromium: found, or installed where that can be done, or said how; never a reason to stop
browser:
	@command -v chromium || command -v chromium-browser || command -v google-chrome || sh tests/web/install_chromium.sh

# shapes are checked by `make test`: the oldest jaxtyping makes its checks anew for every dataclass, which takes hours
test-oldest:
	test -x .venv-oldest/bin/python || $(PYTHON) -m venv .venv-oldest
	.venv-oldest/bin/pip install -q -c constraints-oldest.txt -e ".[dev]"
	JAXTYPING_DISABLE=1 PYTHONDONTWRITEBYTECODE= OMP_NUM_THREADS=1 .venv-oldest/bin/python -m pytest -n 2 -m "not slow" -W "ignore::DeprecationWarning"

wheel: $(VENV)/installed-dev
	$(BIN)/pip install -q -c constraints.txt build
	$(BIN)/python -m build -q

check: $(VENV)/installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/mypy tests/front_door_types.py
	$(BIN)/lint-imports

fuzz: $(VENV)/installed-dev
	$(BIN)/python tests/fuzz/fuzzer.py --cases 10000 --seed 0

mutants: $(VENV)/installed-dev
	$(BIN)/python tests/mutants.py --changes 200 --seed 0

bench: $(VENV)/installed-dev
	$(BIN)/python benchmarks/training.py
	$(BIN)/python benchmarks/metrics.py --quick

docs: $(VENV)/installed-dev
	$(BIN)/python docs/make_metrics.py
	$(BIN)/python docs/make_reproductions.py
	$(BIN)/python docs/make_results.py

site: $(VENV)/installed-docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/installed: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(BIN)/pip install -q -c constraints.txt -e .
	touch $@

$(VENV)/installed-dev: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(BIN)/pip install -q -c constraints.txt -e ".[dev]"
	touch $@ $(VENV)/installed

$(VENV)/installed-docs: $(VENV)/installed-dev
	$(BIN)/pip install -q -c constraints.txt -e ".[docs]"
	touch $@

clean:
	rm -rf $(VENV) build dist site *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
