# Two commands: `make learn` opens the course, `make test` tests it. README.md says the rest.
BIN := $(if $(filter Windows_NT,$(OS)),.venv/Scripts,.venv/bin)
PYTHONS := $(or $(PYTHON),python3 python3.14 python3.13 python3.12 python3.11 python)
TESTED = import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 14))
NEWER = import sys; sys.exit(sys.version_info < (3, 15))
CONSTRAINTS ?= constraints.txt
INSTALL = $(BIN)/python install.py -c $(CONSTRAINTS)

.PHONY: learn test portable quick weekly pages browser ways results claims bench notebooks book \
  release clean
.DELETE_ON_ERROR:

learn: .venv/.learn
	@$(BIN)/course learn $(ARGS)

test: .venv/.test
	@$(BIN)/course fetch
	@$(BIN)/python -m tests

# what another system or another Python may change: no style, no pages, no notebooks
portable: .venv/.test
	@$(BIN)/course fetch
	@$(BIN)/python -m tests --portable

# the everyday loop: style, types, the tests of what you have changed
quick: .venv/.test
	@$(BIN)/python -m tests --quick

# what CI runs once a week: strangers' answers, other graders, fuzz; an hour or two
weekly: .venv/.browser
	@$(BIN)/python -m tests --weekly

# what README.md, docs/RESULTS.md, docs/TOPICS.md and `course list` show of the course: some minutes
pages: .venv/.test
	@$(BIN)/python -m tests --pages

# a newcomer's way through Lab, in this system's Chromium; pictures of it in build/browser
browser: .venv/.browser
	@$(BIN)/python -m pytest -n0 --durations=0 --durations-min=0.1 -rs tests/browser/walk.py

# each way in, from an empty folder to the first panel, and a lesson in VS Code: half an hour
ways: .venv/.browser
	@$(BIN)/python -m pytest -n0 tests/browser/ways_in.py tests/browser/vs_code.py

# figures over several seeds: all lessons, or LESSON=02
results: .venv/.test
	@$(BIN)/python -m research.experiments $(LESSON) --jobs $(or $(JOBS),1)

# what lessons claim of trained models, over seeds and thread counts: an hour, before a release
claims: .venv/.test
	@$(BIN)/python -m research.experiments.claims $(LESSON)

# ours beside other packages: a block, how fast SmolLM2 and the translator write (minutes), and
# attention against the length of the text (twenty minutes)
bench: .venv/.test
	@$(BIN)/python -m research.benchmarks.blocks
	@$(BIN)/python -m research.benchmarks.generation
	@$(BIN)/python -m research.benchmarks.translation
	@$(BIN)/python -m research.benchmarks.classes
	@$(BIN)/python -m research.benchmarks.efficient

# lessons and explorations become notebooks, executed: all of them, or LESSON=02 or 04_trees
notebooks: .venv/.test
	@$(BIN)/python -m lessons $(LESSON)

# the course as a static site in build/book, and its laws
book: .venv/.book
	@$(BIN)/course fetch shakespeare
	@$(BIN)/python -m book
	@$(BIN)/python -m pytest tests/book

# a version, its commit and its tag: VERSION=0.3.0, whose entry CHANGELOG.md has
release:
	@.ci/release $(VERSION)

clean:
	rm -rf .venv build *.egg-info

.venv/.learn: pyproject.toml $(CONSTRAINTS)
	@$(BIN)/python -m pip --version >/dev/null 2>&1 || { \
	  for python in $(PYTHONS); do \
	    $$python -c "$(TESTED)" 2>/dev/null && exec $$python -m venv --clear .venv; done; \
	  for python in $(PYTHONS); do $$python -c "$(NEWER)" 2>/dev/null && \
	    echo "The course is not tested with $$($$python -V) yet, which is the only one here." && \
	    exec $$python -m venv --clear .venv; done; \
	  echo "This course needs Python 3.11 or newer and found none: install one," \
	    "or name it, as in: make learn PYTHON=/path/to/python" >&2; exit 1; }
	@echo "Installing what the course needs: a few minutes, once."
	@$(INSTALL) -e ".[lab]"
	@touch $@

.venv/.test: .venv/.learn
	@$(INSTALL) -e ".[dev]"
	@touch $@

.venv/.browser: .venv/.test
	@$(INSTALL) -e ".[browser]"
	@touch $@

.venv/.book: .venv/.test
	@$(INSTALL) -e ".[book]"
	@touch $@
