# `make test` and `make demo` set up everything that they need; the other targets are their parts.
SHELL := /bin/bash
.DEFAULT_GOAL := help
PRESET ?= dev
BUILD := build/$(PRESET)
# The Kubernetes that local clusters are of, 1.36.3 or v1.36.3: one of hack/tools/kubernetes-*; empty: 1.34.4.
HOLDFAST_K8S ?=
export HOLDFAST_K8S
ifeq ($(origin K8S),command line)
$(error K8S means nothing here: say HOLDFAST_K8S=$(K8S))
endif
# Processes that run test files: they mostly wait, each has a control plane for its files.
JOBS ?= 6
# What `make simulate` runs: so many seeds from 1, or one, of this profile (tests/simulation/script.cc).
SEEDS ?= 100
PROFILE ?= swarm
SYSTEMS ?= holdfast batch
MINUTES ?= 5
# How long `make nightly` takes, about.
NIGHTLY_MINUTES ?= 60
# What `make bench` measures, tests/bench/bench.py; empty: all.
MODES ?=
# What `make e2e` and `make test-long` give pytest besides.
PYTEST_ARGS ?=
# Of which version `make docs` makes the site: a tag, or next.
VERSION := next
# How long `make fuzz` runs each target.
FUZZ_SECONDS ?= 60
export PYTHONDONTWRITEBYTECODE := 1

.PHONY: help
help: ## This list
	@grep -hE '^[a-z0-9-]+:.*## ' Makefile | sed -E 's/:.*## /\t/' | expand -t 18

.PHONY: setup
setup: ## Install what the project needs from Debian
	@hack/setup

.PHONY: tools
tools: setup ## Build the pinned Kubernetes tools into the cache
	@hack/build-tools

.PHONY: demo-parts
demo-parts: # what `make demo` runs on simulated nodes, and no more; the two builds side by side
	@hack/setup --demo
	@$(MAKE) --no-print-directory -j2 demo-tools demo-operator

.PHONY: demo-tools demo-operator
demo-tools:
	@hack/build-tools --cluster >/dev/null
demo-operator:
	@cmake --preset demo >/dev/null
	@hack/progress C++ 5 cmake --build --preset demo --target holdfast-operator

.PHONY: configure
configure: setup
	@cmake --preset $(PRESET) >/dev/null

.PHONY: build
build: configure ## Build everything (PRESET=dev, release, asan, tsan)
	@cmake --build --preset $(PRESET)

.PHONY: plugin
plugin: ## Build kubectl-holdfast as one static program, and pack it for krew (URL=https://...)
	@hack/setup --ui
	@hack/static-libraries >/dev/null
	@cmake --preset release -DHOLDFAST_UI=ON >/dev/null && cmake --build --preset release --target kubectl-holdfast
	@hack/krew build/release/plugin/kubectl-holdfast build/krew $(URL)

.PHONY: unit
unit: build ## Run the unit tests
	@ctest --test-dir $(BUILD) --output-on-failure --progress --timeout 300 -j2 | tr '\r' '\n' | grep -vE '^\[ *[0-9]+%\]|^ *[0-9]+/[0-9]+ Test .* Passed|^$$|^ *Start *[0-9]+:'; exit $${PIPESTATUS[0]}

.PHONY: fuzz-build
fuzz-build: setup
	@cmake --preset fuzz >/dev/null && cmake --build --preset fuzz

.PHONY: fuzz-short
fuzz-short: fuzz-build ## Fuzz what reads others' bytes, the same few thousand runs each time
	@tests/fuzz/run build/fuzz

.PHONY: fuzz
fuzz: fuzz-build ## Fuzz what reads others' bytes, FUZZ_SECONDS=60 for each target
	@tests/fuzz/run build/fuzz --seconds $(FUZZ_SECONDS)

.PHONY: sanitize
sanitize: setup ## Run the unit tests under ASan and UBSan, then under TSan
	@hack/timed "ASan and UBSan" $(MAKE) --no-print-directory unit PRESET=asan
	@hack/timed "TSan" $(MAKE) --no-print-directory unit PRESET=tsan

.PHONY: mutants
mutants: setup ## Break one rule at a time and see a test go red (MUTANTS="words of their names")
	@tests/mutants/run $(MUTANTS)

.PHONY: simulate
simulate: build ## Run the simulated world: SEEDS=1000, or SEED=7, PROFILE=swarm
	@$(BUILD)/tests/simulation/holdfast-simulate --profile $(PROFILE) \
		$(if $(SEED),--seed $(SEED),--seeds 1..$(SEEDS))

.PHONY: trace-oracle
trace-oracle: setup ## Show that a refactoring changes nothing that happens: BASE=<commit> (ORACLE="--seeds 20")
	@hack/trace-oracle $(BASE) $(ORACLE)

.PHONY: model
model: setup ## Check the model of locks and fencing exhaustively, and that it can fail
	@tests/model/check

.PHONY: integration
integration: tools build ## Run the tests on a real API server, the chart's too
	@/usr/bin/python3 -m pytest tests/integration tests/chart tests/referee -m "not long" -n $(JOBS) --dist loadfile -q --durations=15

.PHONY: test-long
test-long: tools build ## Run the tests that wait for minutes: long outages, fifty kills, replicas that come and go
	@/usr/bin/python3 -m pytest tests/integration -m long -n 4 --dist loadfile -q --durations=15 $(PYTEST_ARGS)

.PHONY: chart
chart: tools build ## Run the tests of the Helm chart, charts/install.yaml and the alerts, on a real API server
	@/usr/bin/python3 -m pytest tests/chart -q

.PHONY: ui
ui: ## Check the page's TypeScript, and run its unit tests
	@hack/setup --ui
	@hack/ui
	@cd ui && npm run --silent check && npm run --silent test

.PHONY: ui-dev
ui-dev: ## Serve the page against recorded data, and build it anew when a file changes
	@hack/setup --ui
	@hack/ui && node ui/dev.mjs

.PHONY: ui-pictures
ui-pictures: browser-tools ## Make the pictures of docs/ui.md, and what ui-dev serves, from the real page
	@/usr/bin/python3 -m pytest tests/browser/make_pictures.py -q

.PHONY: browser-tools
browser-tools: tools configure ui
	@hack/setup --browser
	@cmake --preset $(PRESET) -DHOLDFAST_UI=ON >/dev/null
	@cmake --build --preset $(PRESET) --target kubectl-holdfast holdfast-operator

.PHONY: browser
browser: browser-tools ## Try the page in a real browser (PYTEST_ARGS="-k keyboard")
	@/usr/bin/python3 -m pytest tests/browser -q --durations=5 $(PYTEST_ARGS)

.PHONY: e2e
e2e: browser-tools ## Run the tests on real nodes: kind, or E2E_KUBECONFIG=... (HOLDFAST_KEEP=1 keeps it)
	@hack/e2e $(PYTEST_ARGS)

.PHONY: replay
replay: setup ## Show a bug of docs/track-record.md again: BUG=17 and that its mend shows it no more
	@tests/track/replay $(BUG)

.PHONY: referee
referee: tools ## Judge job systems on kind: SYSTEMS="holdfast batch" SEED=1 MINUTES=5 (docs/referee.md)
	@tests/referee/run --systems "$(SYSTEMS)" --seed $(or $(SEED),1) --minutes $(MINUTES) $(REFEREE)

.PHONY: nightly
nightly: tools ## Try seeds that nobody has tried, with Docker and kind: NIGHTLY_MINUTES=60 (docs/nightly.md)
	@tests/nightly/run --minutes $(NIGHTLY_MINUTES)

.PHONY: test
test: ## Set up everything and run all tests
	@hack/timed "set-up" $(MAKE) --no-print-directory setup
	@hack/timed "Kubernetes tools" $(MAKE) --no-print-directory tools
	@hack/timed "build" $(MAKE) --no-print-directory build
	@hack/timed "unit tests" $(MAKE) --no-print-directory unit
	@hack/timed "thread-safety check and fuzz" $(MAKE) --no-print-directory fuzz-short
	@hack/timed "model" $(MAKE) --no-print-directory model
	@hack/timed "integration tests" $(MAKE) --no-print-directory integration
	@hack/timed "the page in a browser" $(MAKE) --no-print-directory browser

.PHONY: demo
demo: ## Set up everything and show a real job survive a node's death
	@hack/demo

.PHONY: demo-down
demo-down: ## Take away what the demo left running
	@hack/demo --down

.PHONY: bench-build
bench-build: setup
	@cmake --preset bench >/dev/null && cmake --build --preset bench

.PHONY: bench
bench: tools bench-build ## Measure all of docs/internals/performance.md and write it (MODES="a e": these alone)
	@tests/bench/bench.py $(MODES)
	@tests/bench/report.py

.PHONY: bench-micro
bench-micro: bench-build ## Measure decide(), admissions, watch lines, lists, the work queue and JSON by themselves
	@build/bench/tests/bench/micro/holdfast-micro

.PHONY: bench-heartbeats
bench-heartbeats: tools ## Measure what 2,000 heartbeats cost the API server, the operator and a pod
	@$(MAKE) --no-print-directory build PRESET=release
	@HOLDFAST_AGENT=$(CURDIR)/build/release/agent/holdfast-agent tests/bench/heartbeats.py \
		--operator build/release/operator/runtime/holdfast-operator

.PHONY: format
format: ## Format the C++ code
	@git ls-files '*.cc' '*.h' | xargs clang-format -i

.PHONY: check-format
check-format: setup ## Say which C++ files are not formatted
	@set -o pipefail; git ls-files '*.cc' '*.h' | xargs clang-format --dry-run -Werror

.PHONY: tidy
tidy: setup ## Run clang-tidy over everything
	@cmake --preset dev -B build/tidy -DCMAKE_UNITY_BUILD=OFF -DHOLDFAST_TESTS=OFF >/dev/null
	@set -o pipefail; git ls-files 'core/*.cc' 'api/*.cc' 'client/*.cc' 'reconciler/*.cc' 'lane/*.cc' 'operator/*.cc' 'agent/*.cc' 'plugin/*.cc' | xargs -P2 -n4 clang-tidy --quiet -p build/tidy

.PHONY: docs
docs: export VERSION := $(VERSION)
docs: ## Check the pages of docs/ and make the site of them (VERSION=v0.1.0, by default next)
	@hack/docs --version "$$VERSION"

.PHONY: generate
generate: tools ## Make anew what is generated: CRDs, docs/api.md, charts/install.yaml, hack/rbac.yaml, gitops
	@hack/generate-crd && hack/generate-api-docs && hack/render-chart && hack/render-gitops

.PHONY: clean
clean: ## Remove the build folders
	@rm -rf build
