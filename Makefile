# Perpetua. `make help` lists the targets.
SHELL := /bin/sh
.DEFAULT_GOAL := help

GO       ?= go
BIN      := bin/perpetua
TOOLS    := $(CURDIR)/.tools
LINT     := $(TOOLS)/golangci-lint
LINT_VERSION := v2.15.0
PACKAGES ?= ./...
# For `perpetua version`. Go does not record the commit of a worktree, and only Go records that there are changes.
COMMIT := $(shell git rev-parse HEAD 2>/dev/null)$(shell git diff --quiet HEAD 2>/dev/null || echo +dirty)
INFO := github.com/perpetua-exchange/perpetua/cmd/perpetua/version
# Binaries contain no paths of the machine that built them, and what was compiled in one checkout serves all others. What a debugger
# needs takes a seventh of the time of compiling and linking: `go build ./cmd/perpetua` has it.
FLAGS := -trimpath -gcflags=all=-dwarf=false
export GOFLAGS := $(FLAGS) $(filter-out $(FLAGS),$(GOFLAGS))
# As in the image. Only the race detector needs C.
export CGO_ENABLED := 0
race-packages race-shared conformance-front: export CGO_ENABLED := 1
# Arguments for `make run`, for example: make run ARGS="--data /tmp/venue --listen 127.0.0.1:9090"
ARGS     ?=

# The rules under domain, the protocol of a term, the Parquet files, and the stories of events run no goroutines (the linter sees
# to it), and with the race detector their properties take ten times as long. What two readers of one state or book share is tested
# with it: these tests have two.
PURE := /perpetua/(domain/.*|streams/(term|term/termtest|sim)|projections/dataset|schemas/events/.*)$$
SHARED := ^(TestScenarios|TestLookingChangesNothing)$$
# These verify logs, archives, or proofs hundreds of times. Other tests of their packages run the same goroutines.
REPEATED := ^Test(Corruptions|Crashes|WrittenLogIsRightlyDecided|TamperedProofs|EveryFlippedByteIsRefused)$$
# These send Postgres hundreds of statements, one after the other, and run no goroutines.
SEQUENTIAL := ^Test((Onboarding)?(ListsStayNarrow|RowsAsOfEqualAFold)|EveryColumnOfEveryTableIsCompared|OnboardingIsComparedInEveryColumn)$$

.PHONY: help
help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | awk -F '\t' '{printf "  %-17s %s\n", $$1, $$2}'

.PHONY: build
build: ## compile the binary to bin/perpetua
	$(GO) build -ldflags "-X $(INFO).commit=$(if $(filter +dirty,$(COMMIT)),,$(COMMIT))" -o $(BIN) ./cmd/perpetua

.PHONY: run
run: build ## start a venue with an embedded broker and an embedded Postgres (ARGS="…" are passed to perpetua run)
	@exec $(BIN) run $(ARGS)

.PHONY: cluster
cluster: build ## start a venue of two nodes in each role, as processes with one broker and one Postgres
	@exec $(BIN) cluster $(ARGS)

# The end-to-end tests take longest, and those of the journal mostly wait. Begun first, they leave no processor idle at the end.
E2E   := /perpetua/cmd/perpetua/e2e$$
FIRST := /perpetua/(cmd/perpetua/e2e|streams/journal)$$
# Many tests wait for what must not happen, so more packages than processors are tested at once.
AT_ONCE := -p 4
# Tests allocate much and keep little: at its default pace, the garbage collector takes a fifth of their processor time. The
# limit makes it as frequent as usual in a large process.
COLLECTOR := GOGC=400 GOMEMLIMIT=2GiB
# The race detector needs several times the memory of the heap.
RACE_COLLECTOR := GOGC=400 GOMEMLIMIT=1GiB
# Few packages need so much memory to be compiled that the collector must run.
COMPILER := -toolexec 'env GOGC=off GOMEMLIMIT=1GiB'
# Ends tests that hang. On a busy machine a package has taken seven minutes, without the race detector.
LIMIT   := -timeout 30m
TESTED  = $(shell $(GO) list $(PACKAGES))
inorder = $(shell printf '%s\n' $(1) | grep -E '$(FIRST)') $(shell printf '%s\n' $(1) | grep -vE '$(FIRST)')

# The linter runs vet.
.PHONY: test
test: ## all tests; `make race` runs them with the race detector
	$(COLLECTOR) $(GO) test -vet=off $(COMPILER) $(AT_ONCE) $(LIMIT) $(call inorder,$(TESTED))

.PHONY: race
race: ## the tests of all packages that run goroutines, with the race detector; needs a C compiler
	@$(MAKE) --no-print-directory -j 2 race-shared race-packages

.PHONY: race-packages
race-packages:
	$(RACE_COLLECTOR) $(GO) test -vet=off -race $(COMPILER) -p 3 $(LIMIT) -skip '$(REPEATED)|$(SEQUENTIAL)' $(call inorder,$(shell printf '%s\n' $(TESTED) | grep -vE '$(PURE)|$(E2E)'))

.PHONY: race-shared
race-shared:
	$(GO) test -vet=off -race $(LIMIT) -run '$(SHARED)' ./domain/book ./domain/trading

# What does not differ with the broker: the commands of the READMEs never see KAFKA_BROKERS, and a follower without brokers
# follows a venue that has its own.
SAME   := ^Test(AxeIsVendored|.*Accessible|.*Pages?|.*Console.*|Compose.*|RolesOfAManagedPostgres|Dashboard.*|Readme.*|FollowWithoutBrokers|ABrowserIsLikeANewOne)$$
# Of cmd/perpetua, the packages with tests on KAFKA_BROKERS. The others would repeat themselves.
BROKER := ./cmd/perpetua/e2e ./cmd/perpetua/node ./cmd/perpetua/tools ./streams/journal/... ./streams/broker/kafkatest ./streams/ownership/... ./streams/follow/... ./streams/transfer/... ./streams/trim

.PHONY: test-kafka
test-kafka: ## journal, end-to-end and kill tests on a real Apache Kafka 4 (KAFKA_BROKERS, Docker or Java)
	$(COLLECTOR) $(GO) run ./streams/broker/kafkatest/run -- $(GO) test -vet=off -count=1 $(COMPILER) $(LIMIT) -skip '$(SAME)' $(BROKER)

.PHONY: conformance
conformance: ## test a running venue against every sentence of the two specifications, and print a report
	@mkdir -p bin && rm -f bin/conformance-*.md; PERPETUA_CONFORMANCE_REPORT=$(CURDIR)/bin $(GO) test -count=1 $(LIMIT) -run '^Test(Onboarding)?Conformance$$' ./cmd/perpetua/e2e; code=$$?; cat bin/conformance-*.md; exit $$code

.PHONY: conformance-front
conformance-front: ## the same with all requests sent to a node that owns no journal, with the race detector and without the report
	PERPETUA_CONFORMANCE_FRONT=1 $(GO) test -race -count=1 $(LIMIT) -run '^Test(Onboarding)?Conformance$$' ./cmd/perpetua/e2e

.PHONY: ajv
ajv: ## compile the JSON Schemas of records with ajv in strict mode (needs node and npm)
	@[ -d $(TOOLS)/ajv/node_modules/ajv ] || npm install --silent --prefix $(TOOLS)/ajv ajv@8 ajv-formats@3
	PERPETUA_TEST_AJV=$(TOOLS)/ajv $(GO) test -count=1 $(LIMIT) -v -run '^TestAjv$$' ./schemas

.PHONY: kills
kills: ## kill -9 under load and during funding, settlement, liquidations, and batches, PERPETUA_TEST_KILLS times (20)
	PERPETUA_TEST_KILLS=$${PERPETUA_TEST_KILLS:-20} $(GO) test -count=1 $(LIMIT) -run '^(TestKill|TestKilled.*|TestCluster)$$' ./cmd/perpetua/e2e

FAULTS   ?= 20
SEED     ?= 1

.PHONY: faults
faults: build ## kill or cut off brokers and owners of a venue under load, FAULTS times from SEED, and print how long each stops it; needs Java or Docker
	$(GO) build -o bin/faults ./cmd/faults
	@bin/faults -perpetua $(BIN) -faults $(FAULTS) -seed $(SEED) $(ARGS) || { code=$$?; [ $$code = 3 ] || exit $$code; } # 3: there is neither

.PHONY: upgrade
upgrade: ## upgrade a cluster node by node under load, from 0.1.0 and from the build before streams; needs the git history
	PERPETUA_TEST_UPGRADE=1 $(GO) test -count=1 $(LIMIT) -v -run '^TestUpgrade$$' ./cmd/perpetua/e2e

.PHONY: sockets
sockets: ## ten thousand sockets on a node, a book rebuilt over 100,000 updates, a client that restarts a thousand times
	PERPETUA_TEST_SOCKETS=1000 $(GO) test -count=1 $(LIMIT) -run '^TestSocketsOverAMovingBook$$' ./handlers/live
	PERPETUA_TEST_SOCKETS=10000 $(GO) test -count=1 $(LIMIT) -v -run '^TestThousandsOfSockets$$' ./cmd/perpetua/e2e
	PERPETUA_TEST_BOOK_UPDATES=100000 $(GO) test -count=1 $(LIMIT) -v -run '^TestBookRebuiltFromASocket$$' ./cmd/perpetua/e2e
	PERPETUA_TEST_RESTARTS=1000 $(GO) test -count=1 $(LIMIT) -run '^TestRestartsMissNothing$$' ./cmd/perpetua/e2e

.PHONY: maker
maker: ## ten minutes (PERPETUA_TEST_MAKER) of a market maker on a client generated from the OpenAPI file; needs the module proxy
	PERPETUA_TEST_MAKER=$${PERPETUA_TEST_MAKER:-10m} $(GO) test -count=1 $(LIMIT) -v -run '^TestMarketMaker$$' ./cmd/perpetua/e2e

.PHONY: tessera
tessera: ## verify transparency logs with Tessera's fsck and client; needs the module proxy
	PERPETUA_TEST_TESSERA=1 $(GO) test -count=1 $(LIMIT) -v -run '^TestTessera$$' ./handlers/tlog

.PHONY: witness
witness: ## have the stock witness omniwitness cosign transparency logs and refuse forks of them; needs the module proxy
	PERPETUA_TEST_OMNIWITNESS=1 $(GO) test -count=1 $(LIMIT) -v -run '^TestOmniwitness' ./streams/transparency ./cmd/perpetua/e2e

.PHONY: analysts
analysts: ## read Parquet files and the DuckLake catalog with DuckDB, and build the dbt project; needs python3 and its package index
	PERPETUA_TEST_ANALYSTS=$(TOOLS)/analysts $(GO) test -count=1 $(LIMIT) -p 1 -v -run '^(TestAnalysts|TestDuckLake(WithoutFiles)?)$$' ./projections/dataset ./projections/lake

.PHONY: market
market: ## an hour of simulated market (PERPETUA_TEST_SIM_MINUTES, PERPETUA_TEST_SIM_SEED), instead of the two and a half minutes of `make test`
	PERPETUA_TEST_SIM_MINUTES=$${PERPETUA_TEST_SIM_MINUTES:-60} $(GO) test -count=1 $(LIMIT) -run '^TestMarket$$' ./domain/reference

STEPS    ?= 20000000

.PHONY: sim
sim: ## simulate the ownership protocol through STEPS steps with crashes and lost messages, from SEED on; a failure prints its seed
	PERPETUA_TEST_TERM_STEPS=$(STEPS) PERPETUA_TEST_TERM_SEED=$(SEED) $(GO) test -count=1 -timeout 2h -v -run '^TestTerms$$' ./streams/sim

SEEDS    ?= 500

.PHONY: nodes
nodes: ## simulate whole nodes on an in-memory network with crashes and cuts, for SEEDS seeds from SEED on; a failure prints its seed
	PERPETUA_TEST_NODE_SEEDS=$(SEEDS) PERPETUA_TEST_NODE_SEED=$(SEED) $(GO) test -count=1 -timeout 2h -v -run '^TestNodes$$' ./cmd/perpetua/nodesim

.PHONY: frozen
frozen: ## compare logs of 100,000 records and the fingerprints of requests with those of earlier builds
	PERPETUA_TEST_FROZEN=1 $(GO) test -count=1 $(LIMIT) -run '^(TestFrozen.*|TestMarket)$$' ./domain/reference ./domain/onboarding ./domain/identity ./handlers/trading ./handlers/onboarding

.PHONY: demo
demo: ## the demo market until it has shown leverage, a stop, funding and a liquidation: two minutes
	PERPETUA_TEST_DEMO_SHOW=1 $(GO) test -count=1 $(LIMIT) -run '^TestDemoShow$$' ./cmd/perpetua/e2e

.PHONY: fuzz
fuzz: ## every fuzz target for a few seconds
	@for pkg in $$($(GO) list ./...); do \
	  for f in $$($(GO) test -list '^Fuzz' $$pkg | grep '^Fuzz' || true); do \
	    echo "$$pkg $$f"; $(GO) test -run '^$$' -fuzz "^$$f$$" -fuzztime $${FUZZTIME:-5s} $$pkg || exit 1; \
	  done; \
	done

.PHONY: bench
bench: ## the Go benchmarks, each with its raw limit
	$(GO) test -run '^$$' -bench . -benchmem $(PACKAGES)

.PHONY: bench-run
bench-run: build ## compare the system with its raw limits and rivals, on an idle machine (ARGS="--only rest,live")
	$(GO) build -o bin/bench ./cmd/bench
	@bin/bench --perpetua $(BIN) $(ARGS)

.PHONY: lint
lint: $(LINT) ## static checks, also of the import directions and of go.mod
	@test -z "$$(gofmt -l $$(git ls-files '*.go'))" || { echo "gofmt is needed on:"; gofmt -l $$(git ls-files '*.go'); exit 1; }
	$(LINT) run $(PACKAGES)
	@$(GO) mod tidy -diff >/dev/null 2>&1 || { echo "make tidy is needed"; exit 1; }

$(LINT):
	GOBIN=$(TOOLS) $(GO) install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(LINT_VERSION)

.PHONY: tidy
tidy: ## update go.mod and go.sum to the imports
	$(GO) mod tidy

.PHONY: clean
clean: ## remove what was built here (never the data folder)
	rm -rf bin .tools coverage.out
