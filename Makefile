# The whole interface to the tooling. Paths are relative, so a clone path may contain spaces.
PYTHON ?= python3
HOST ?= 127.0.0.1
PORT ?= 8000
BIN := .venv/bin

.PHONY: demo test test-now test-ending test-looking test-later check chromium compiler alertmanager pgbouncer screenshots faults attack audit sbom fuzz bench-client bench-ingest bench-drift bench-gates bench-now bench-oncall bench-query bench-pages bench-reading bench-attribution bench-closing bench-promises bench-onset bench-populations bench-fairness bench-names bench-history bench-permit bench-plans bench-shadow lock clean

demo: .venv/installed
	@exec $(BIN)/python -m gapwatch demo --host "$(HOST)" --port "$(PORT)" --data-dir .demo

# What kills processes and fills disks mostly waits; what opens browsers and measures time computes. The two run beside
# each other, each one test at a time; everything else before them, two files at a time. What promises a time comes first.
TIMED := tests/test_start_time.py
ENDING := tests/faults tests/test_supervisor.py tests/test_worker.py tests/test_embedded.py tests/test_outside_servers.py \
	tests/test_demo.py tests/test_containers.py tests/test_backups.py tests/test_health.py tests/ingest/test_connections.py
LOOKING := tests/browser tests/client tests/ingest/test_episodes.py tests/ingest/test_keys.py tests/ingest/test_catalogue.py \
	tests/pages/people/test_onboarding.py

# What the time of day decides, briefly a second time with a clock that is 400 days ahead: `make test-later` runs it all so.
CLOCKED := tests/test_clocks.py tests/alerts/test_addresses.py tests/alerts/test_outbox.py tests/alerts/test_preview.py \
	tests/alerts/test_time.py tests/alerts/test_watch.py tests/channels tests/pages/test_queries.py tests/ingest/test_catalogue.py
PYTEST := -m pytest

test: check chromium compiler alertmanager pgbouncer
	@$(MAKE) --no-print-directory test-now
	@$(BIN)/python tests/later.py -n 2 --dist loadfile $(CLOCKED) -k "not test_catalogue or clock"

test-now: .venv/installed-dev
	@$(BIN)/python $(PYTEST) $(TIMED)
	@$(BIN)/python $(PYTEST) -n 2 --dist loadfile $(addprefix --ignore=,$(TIMED) $(ENDING) $(LOOKING))
	@$(MAKE) --no-print-directory --jobs 2 --output-sync=target test-ending test-looking

test-ending: .venv/installed-dev
	@$(BIN)/python $(PYTEST) $(ENDING)

test-looking: .venv/installed-dev
	@$(BIN)/python $(PYTEST) $(LOOKING)

check: .venv/installed-dev
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-cache
	@$(BIN)/djlint frontend/templates --check
	@$(BIN)/djlint frontend/templates --lint --quiet

# Browser tests need it. Debian's package is installed where that is allowed; elsewhere the run says what it left out.
chromium:
	@command -v chromium >/dev/null || { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && apt-get update -qq && \
		DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium >/dev/null; } || true

# The clock that is ahead is compiled. Like Chromium.
compiler:
	@command -v cc >/dev/null || { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && apt-get update -qq && \
		DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends gcc libc6-dev >/dev/null; } || true

# The program that one kind of channel speaks to. Like Chromium; the tests start it themselves.
alertmanager:
	@command -v prometheus-alertmanager >/dev/null || { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && apt-get update -qq && \
		DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends prometheus-alertmanager >/dev/null && \
		{ [ ! -d /run/systemd/system ] || systemctl disable --now --quiet prometheus-alertmanager; }; } || true

# What may stand between the service and its Postgres. Like Chromium; the tests start it themselves.
pgbouncer:
	@PATH="$$PATH:/usr/sbin"; command -v pgbouncer >/dev/null || { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && apt-get update -qq && \
		DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends pgbouncer >/dev/null && \
		{ [ ! -d /run/systemd/system ] || systemctl disable --now --quiet pgbouncer; }; } || true

# The README's pictures, from a demo of their own.
screenshots: .venv/installed-dev chromium
	@$(BIN)/python docs/pictures/take_pictures.py

# The long versions of what the suite does briefly.
test-later: .venv/installed-dev chromium compiler alertmanager pgbouncer
	@$(MAKE) --no-print-directory test-now PYTEST=tests/later.py

faults: .venv/installed-dev
	@GAPWATCH_FAULT_SECONDS=$(or $(SECONDS),600) $(BIN)/python -m pytest tests/faults -s --timeout=3600

# Every attack that was tried, as one pass; what takes long runs longer than in the suite.
attack: .venv/installed-dev
	@GAPWATCH_FUZZ_SECONDS=$(or $(SECONDS),60) $(BIN)/python -m pytest tests/attack tests/channels/test_egress.py \
		tests/pages/test_routes.py tests/ingest/test_raw_bytes.py --timeout=3600

# Our own code, and what is known of the locked packages; that needs the network. Waivers: pyproject.toml for bandit, and
# .pip-audit-waivers, an id a line with its reason behind a #.
audit: .venv/installed-dev
	@$(BIN)/bandit --quiet --configfile pyproject.toml --recursive backend client
	@$(BIN)/pip-audit --requirement requirements.lock --disable-pip --require-hashes --strict \
		$$(sed -n 's/^\([A-Za-z0-9-]\{1,\}\).*/--ignore-vuln \1/p' .pip-audit-waivers) \
		|| { echo "pip-audit did not pass. Where a package is \"not found on PyPI\", PyPI was not reached and nothing was audited."; exit 1; }

# What is in it, as CycloneDX.
sbom: .venv/installed-dev
	@$(BIN)/cyclonedx-py requirements requirements.lock --pyproject pyproject.toml --output-reproducible \
		--output-format JSON --output-file sbom.cdx.json
	@echo "sbom.cdx.json"

fuzz: .venv/installed-dev
	@GAPWATCH_FUZZ_SECONDS=$(or $(SECONDS),600) $(BIN)/python -m pytest tests/ingest/test_raw_bytes.py --timeout=3600

bench-attribution: .venv/installed-dev
	@$(BIN)/python -m bench.attribution $(ARGS)

bench-closing: .venv/installed-dev
	@$(BIN)/python -m bench.closing $(ARGS)

bench-query: .venv/installed-dev
	@$(BIN)/python -m bench.query $(ARGS)

bench-pages: .venv/installed-dev
	@$(BIN)/python -m bench.pages $(ARGS)

bench-reading: .venv/installed-dev
	@$(BIN)/python -m bench.reading $(ARGS)

bench-client: .venv/installed-dev
	@$(BIN)/python -m bench.client $(ARGS)

bench-ingest: .venv/installed-dev
	@$(BIN)/python -m bench.ingest $(ARGS)

bench-drift: .venv/installed-dev
	@$(BIN)/python -m bench.drift $(ARGS)

bench-gates: .venv/installed-dev
	@$(BIN)/python -m bench.gates $(ARGS)

bench-now: .venv/installed-dev
	@$(BIN)/python -m bench.now $(ARGS)

bench-oncall: .venv/installed-dev
	@$(BIN)/python -m bench.oncall $(ARGS)

bench-promises: .venv/installed-dev
	@$(BIN)/python -m bench.promises $(ARGS)

bench-populations: .venv/installed-dev
	@$(BIN)/python -m bench.populations $(ARGS)

# When it began and with what: shapes of a fall, releases, dates of alarms, correlated suspects.
bench-onset: .venv/installed-dev
	@$(BIN)/python -m bench.onset $(ARGS)

bench-fairness: .venv/installed-dev
	@$(BIN)/python -m bench.fairness $(ARGS)

bench-names: .venv/installed-dev
	@$(BIN)/python -m bench.names $(ARGS)

bench-permit: .venv/installed-dev
	@$(BIN)/python -m bench.permit $(ARGS)

bench-plans: .venv/installed-dev
	@$(BIN)/python -m bench.plans $(ARGS)

bench-shadow: .venv/installed-dev
	@$(BIN)/python -m bench.shadow $(ARGS)

bench-history: .venv/installed-dev
	@$(BIN)/python -m bench.history $(ARGS)

# Needs the network; everything else works without once installed.
lock: .venv/bin/python
	$(BIN)/python -m pip install --quiet uv
	$(BIN)/uv pip compile --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-annotate --no-header \
		--custom-compile-command "make lock" pyproject.toml -o requirements.lock --quiet
	$(BIN)/uv pip compile --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-annotate --no-header \
		--extra dev -c requirements.lock pyproject.toml -o requirements-dev.lock --quiet

.venv/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "Gapwatch needs Python 3.11 or newer; $(PYTHON) is older. Try: make PYTHON=python3.12" >&2; exit 1; }
	@echo "Making the virtual environment in .venv …"
	@$(PYTHON) -m venv .venv || \
		{ rm -rf .venv; echo "This Python cannot make virtual environments. On Debian: apt-get install python3-venv" >&2; exit 1; }

# The stamps are written last, so an interrupted installation is simply done again.
.venv/installed: requirements.lock pyproject.toml client/pyproject.toml | .venv/bin/python
	@echo "Installing the locked packages (about a minute, once) …"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e . -e ./client
	@touch $@

.venv/installed-dev: requirements-dev.lock .venv/installed
	@echo "Installing the locked test tools …"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-dev.lock
	@touch $@

clean:
	rm -rf .venv .demo .cache
