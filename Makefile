# One toolchain for everybody: this wins over what the environment says, so a
# newer or an older Go on the machine builds the same program.
export GOTOOLCHAIN := go1.27.3

GO ?= go
.DEFAULT_GOAL := help

# Targets say what they do after '##'; help and the README print those lines.

.PHONY: help
help: ## print this list
	@awk -F ':.*## ' '/^[a-z]+:.*## /{printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: build
build: ## build every program of cmd/ into bin/, static and without paths of this machine
	CGO_ENABLED=0 $(GO) build -trimpath -o bin/ ./cmd/...

.PHONY: test
test: ## run every test in a random order; needs Go and git only
	$(GO) test -shuffle=on ./...

# A damaged page makes bbolt point outside of its file. The index takes the fault for what
# it is; the check that comes with -race would end the process before.
unchecked := -gcflags='go.etcd.io/bbolt/...=-d=checkptr=0'

.PHONY: race
race: ## run every test under the race detector; needs a C compiler
	CGO_ENABLED=1 $(GO) test -race $(unchecked) -shuffle=on -timeout 25m ./...

# Tools have a module of their own, so that the programs' modules hold none.
tool := $(GO) tool -modfile=scripts/tools/go.mod

.PHONY: check
check: ## vet for Linux and darwin, staticcheck, formatting, generated files, the rules of the house, the compose file, known vulnerabilities
	$(GO) vet ./...
	GOOS=darwin CGO_ENABLED=0 $(GO) vet ./...
	$(tool) staticcheck ./...
	@unformatted=$$(gofmt -l cmd deploy events services); \
	if [ -n "$$unformatted" ]; then echo "not formatted, run gofmt -w on:"; echo "$$unformatted"; exit 1; fi
	$(GO) test ./events ./services/internal/repocheck
	$(GO) -C deploy/composetest test ./...
	GO="$(GO)" scripts/vulncheck.sh

.PHONY: soak
soak: ## repeat what only time shows: many kills, long outages, ten minutes of fuzzing
	BANKSMAN_SOAK=1 $(GO) test -timeout 3h ./services/front -run 'TestRolesAre|TestEpochSurvives|TestBusIsAway|TestStorm|TestFlood|TestTwoPersons|TestFourEnds'
	BANKSMAN_SOAK=1 $(GO) test -timeout 3h ./services/internal/policy -run TestSoak
	BANKSMAN_SOAK=1 $(GO) test -timeout 3h ./services/auditor -run 'TestNoFalseGap|TestKill$$|TestRestartsLeave'
	BANKSMAN_SOAK=1 $(GO) test -timeout 3h ./services/internal/tlog -run 'TestEveryFileCallFails|TestKilledAgainAndAgain|TestEveryFlippedBit'
	BANKSMAN_SOAK=1 $(GO) test -timeout 3h ./services/internal/evidence -run 'TestVerifiersAgree|TestEveryByteOfABundle|TestStrangersLines|TestExport'
	BANKSMAN_SOAK=1 $(GO) test -timeout 3h ./services/internal/witness -run TestTwoAuditors
	$(GO) test -timeout 3h ./services/internal/tlog -run '^$$' -fuzz '^FuzzParseEntry$$' -fuzztime 10m
	BANKSMAN_SOAK=1 $(GO) test -timeout 3h ./services/internal/proc -run TestManyProcesses
	BANKSMAN_SOAK=1 $(GO) test -timeout 3h ./services/internal/index -run TestQuestionsCost
	BANKSMAN_SOAK=1 $(GO) test -timeout 3h ./services/internal/bench -run TestCrowd

.PHONY: bench
bench: build ## measure jobs, latency, verbs, memory, rounds and the log, each beside a floor of the same run; also to bin/bench.jsonl
	BANKSMAN_BENCH="$(CURDIR)/bin" $(GO) test -C services/internal/bench -run '^TestBench$$' -count=1 -timeout 30m

.PHONY: docker
docker: ## build both container images; needs a docker engine and the base images
	docker build -f deploy/Dockerfile --target role -t banksman:role .
	docker build -f deploy/Dockerfile --target runner -t banksman:runner .

.PHONY: interop
interop: ## let other authors' programs judge the log: a reader of exports, a witness and its client, published vectors
	$(GO) -C services/auditor/interop test ./...

.PHONY: generate
generate: ## write what is derived: schemas, missing golden files, the README's generated regions
	$(GO) test ./events -run '^TestSchemas' -update
	$(GO) test ./services/internal/grants -run '^TestDeployed' -update
	$(GO) test ./services/internal/repocheck -run '^TestReadme' -update

.PHONY: demo
demo: build ## show jobs from proposal to verified log, offline, in a throw-away folder
	CGO_ENABLED=0 $(GO) build -trimpath -o bin/ ./services/internal/lab/forge
	scripts/demo.sh
