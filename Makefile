# Trawl. `make` alone lists the targets.
SHELL := /bin/bash
.DEFAULT_GOAL := help

GO ?= go
BIN := bin/trawl
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
LDFLAGS := -s -w -X github.com/trawl-search/trawl/cmd/trawl/internal/cli.version=$(VERSION)
BUF := $(GO) tool -modfile=tools/go.mod buf
LINT := $(GO) tool -modfile=tools/lint/go.mod golangci-lint

# One static binary. The race detector is the only thing here that needs cgo.
export CGO_ENABLED := 0

# Repository of `make demo` and `make run`: a path or URL. Empty means the
# source tree of the Go toolchain.
REPO ?=

##@ Try it

.PHONY: demo
demo: build ## Start everything, index a Git repository (REPO=path or URL), run some queries, stop
	@demo/run.sh "$(BIN)" demo "$(REPO)"

.PHONY: run
run: build ## The same, and stay up for queries of your own
	@demo/run.sh "$(BIN)" run "$(REPO)"

##@ Build

.PHONY: build
build: ## Build bin/trawl, the one static binary
	@$(GO) build -trimpath -ldflags '$(LDFLAGS)' -o $(BIN) ./cmd/trawl

.PHONY: generate
generate: ## Generate the Go code of the protos
	$(BUF) generate

.PHONY: clean
clean: ## Remove what was built here
	rm -rf bin .cache

##@ Prove

.PHONY: test
test: ## Run everything that proves the project; ends with a count of what ran
	@$(GO) run ./internal/runall $(STEPS)

# All packages but the end-to-end tests. Those run a binary that they build, which
# the test cache does not know: they must never be answered from it.
UNIT = $(shell $(GO) list ./... | grep -v /integration)

# The steps of `make test`, in order: name=command. A step whose command prints
# `go test -json` events is counted by test, any other is one check.
STEPS = \
	"generated code=$(MAKE) --no-print-directory check-generated" \
	"lint=$(MAKE) --no-print-directory lint" \
	"tests=$(GO) test -json -timeout 10m $(UNIT)" \
	"integration=$(GO) test -json -count=1 -timeout 10m ./integration/..." \
	"race detector=$(MAKE) --no-print-directory race JSON=-json" \
	"demo=$(MAKE) --no-print-directory demo-short"

# The packages whose goroutines share memory, and which end quickly enough
# under the detector (five to ten times slower than without it).
RACE := ./index/format/... ./index/shard/... ./internal/... ./services/... ./cmd/...

.PHONY: race
race: ## Run the concurrent packages' tests under the race detector (needs a C compiler)
	@if CGO_ENABLED=1 $(GO) env CC | xargs which >/dev/null 2>&1; then \
		CGO_ENABLED=1 $(GO) test -race -short $(JSON) -timeout 10m $(RACE); \
	else echo "skipped: the race detector needs a C compiler"; fi

.PHONY: unit
unit: ## Run the tests of all packages but the end-to-end ones
	$(GO) test $(UNIT)

.PHONY: integration
integration: ## Run the end-to-end tests: every role a process of its own
	$(GO) test -v -count=1 -timeout 10m ./integration/...

.PHONY: lint
lint: ## Run the linters of .golangci.yml, go vet among them
	@$(LINT) run ./...

.PHONY: check-generated
check-generated: ## Fail when generated code is not current, or the protos break a rule
	@$(BUF) lint
	@rm -rf .cache/generated && mkdir -p .cache/generated
	@$(BUF) generate --output .cache/generated
	@diff -ru --exclude='*.proto' --exclude=third_party proto .cache/generated/proto \
		|| { echo "generated code is not current: run make generate"; exit 1; }

.PHONY: demo-short
demo-short: build ## The demo on a small repository made on the spot
	@demo/run.sh "$(BIN)" short

FUZZTIME ?= 20s
.PHONY: fuzz
fuzz: ## Run every fuzz target for FUZZTIME each (20s)
	@for p in $$($(GO) list ./...); do \
		for f in $$($(GO) test -list '^Fuzz' $$p | grep '^Fuzz' || true); do \
			echo "== $$p $$f"; $(GO) test -run '^$$' -fuzz "^$$f\$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 1x $$p || exit 1; \
		done; \
	done

##@ Measure

# What is measured: go, kubernetes, linux, modules or all; BENCH has more flags.
CORPUS ?= go
BENCH ?=

.PHONY: bench
bench: ## Measure indexing and search of CORPUS beside the peers installed (bench/README.md)
	@mkdir -p .cache && $(GO) build -o .cache/bench ./bench && .cache/bench -corpus $(CORPUS) $(BENCH)

.PHONY: profile-index
profile-index: ## Write a CPU profile of indexing CORPUS
	@mkdir -p .cache && $(GO) build -o .cache/bench ./bench && .cache/bench -corpus $(CORPUS) -profile index -profile-file .cache/index.prof $(BENCH)

.PHONY: profile-search
profile-search: ## Write a CPU profile of searching CORPUS
	@mkdir -p .cache && $(GO) build -o .cache/bench ./bench && .cache/bench -corpus $(CORPUS) -profile search -profile-file .cache/search.prof $(BENCH)

##@ Help

.PHONY: help
help: ## List the targets
	@awk 'BEGIN { FS = ":.*## " } \
		/^##@/ { printf "\n%s\n", substr($$0, 5) } \
		/^[a-z-]+:.*## / { printf "  %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST); echo
