# What people do here. `make` alone lists it.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

# Envoy versions that the end-to-end tests run against; the demo and the benchmark use the last.
ENVOY_VERSIONS := 1.36.2 1.40.0
DEMO_ENVOY_VERSION := $(lastword $(ENVOY_VERSIONS))
JEST := npm run --silent jest --

.PHONY: help
help: ## this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /\1\t/' | expand -t 17

.PHONY: demo
demo: build tools openssl envoy-demo ## from workloads' tokens through Control to requests through a real Envoy, each outcome; cleans up
	@node .build/demo/main.js

.PHONY: demo-keep
demo-keep: build tools openssl envoy-demo ## the same, left running, with command lines to paste
	@node .build/demo/main.js --keep

.PHONY: quick
quick: node_modules/.installed ## format, lint, types, import directions and the tests without processes; about a minute
	@$(MAKE) --no-print-directory -j2 lint types architecture
	@PROOFGATE_TEST_LANE=quick $(JEST)

.PHONY: test
test: node_modules/.installed ## before every commit: quick, and the tests that show each part of the specification, on one Envoy, Redis and PostgreSQL; about six minutes
	@$(MAKE) --no-print-directory -j2 lint types architecture build system-packages envoy-demo
	@PROOFGATE_TEST_LANE=fast PROOFGATE_TEST_CPU_SECONDS=450 $(JEST)

.PHONY: test-extended
test-extended: build packages tools system-packages envoy proxies helm-tools image-tools kubernetes traefik spire sdk-tools keycloak actionlint ## all other tests: all Envoys and proxies, SPIRE, chart, API server, image, documented sessions, long faults, a short part of each soak
	@PROOFGATE_TEST_LANE=extended $(JEST)

.PHONY: test-kubernetes
test-kubernetes: build system-packages envoy-demo helm-tools kubernetes ## chart, documented workloads and Control against a real API server; part of test-extended
	@$(JEST) test/kubernetes

.PHONY: soak
soak: build tools system-packages envoy proxies traefik spire sdk-tools ## what test-extended does in short, in full, for some hours: kills under load, faults and failovers of Redis, damaged and swapped bundles, replaced verifiers, hostile load, observed routes, rotations, generated requests and mutations
	@PROOFGATE_TEST_KILLS=200 $(JEST) --runInBand test/e2e/control/kills test/control/program/master-key-kills test/caller/agent/agent-process test/cli/enroll-killed
	@PROOFGATE_TEST_SUBMISSIONS=1000 $(JEST) --runInBand test/e2e/control/one-challenge
	@PROOFGATE_TEST_REQUESTS=1000 $(JEST) --runInBand test/caller/signer/egress/forwarding
	@PROOFGATE_TEST_CORRUPTIONS=10000 PROOFGATE_TEST_SWAPS=2000 PROOFGATE_TEST_BUNDLE_KILLS=200 $(JEST) --runInBand test/verifier/loading/survival test/e2e/bundles
	@PROOFGATE_TEST_REQUESTS=5000 PROOFGATE_TEST_SKIPS=none $(JEST) --runInBand test/e2e/fail-closed test/verifier/audit/full-disk
	@PROOFGATE_TEST_FAULTS=5 PROOFGATE_TEST_FAILOVERS=20 PROOFGATE_TEST_COPIED_PROOFS=1000 PROOFGATE_TEST_PACE_MS=16 $(JEST) --runInBand test/e2e/replay
	@PROOFGATE_TEST_ROLLS=30 PROOFGATE_TEST_PACE_MS=20 $(JEST) --runInBand test/e2e/rolling
	@PROOFGATE_TEST_LOAD_SECONDS=600 $(JEST) --runInBand test/e2e/proxy/load
	@PROOFGATE_TEST_SIGNER_KILLS=200 $(JEST) --runInBand test/e2e/signer/kills
	@PROOFGATE_TEST_LOAD_SECONDS=300 PROOFGATE_TEST_SVID_SECONDS=60 PROOFGATE_TEST_PACE_MS=50 $(JEST) --runInBand test/e2e/spire/rotation
	@PROOFGATE_TEST_MIXED_ROUNDS=18 $(JEST) --runInBand test/e2e/observe
	@PROOFGATE_TEST_EVENTS=100000 $(JEST) --runInBand test/verifier/preview/prediction
	@PROOFGATE_TEST_SCHEDULES=1000 $(JEST) --runInBand test/control/publishing/revocation-receipts
	@PROOFGATE_TEST_MUTATIONS=100000 PROOFGATE_TEST_MUTANTS=4000 PROOFGATE_TEST_CLOCK_RUNS=300 $(JEST) --runInBand test/verifier/decision/order test/verifier/decision/proof-mutations test/verifier/decision/explain test/broker/mutations test/verifier/replay/memory.test
	@PROOFGATE_TEST_SUMMARY_TARGETS=100 $(JEST) --runInBand test/control/decisions/size
	@PROOFGATE_TEST_SDK_REQUESTS=10000 $(JEST) --runInBand test/caller/sdk/corpus
	@PROOFGATE_TEST_SEED=$$RANDOM PROOFGATE_TEST_REQUESTS=20000 $(JEST) --runInBand test/wire-fuzz

.PHONY: fuzz
fuzz: node_modules/.installed ## a million inputs into each surface that takes bytes from strangers; TARGETS="path bundle" fuzzes some, PROOFGATE_FUZZ_RUNS sets how many
	@node scripts/fuzz.mjs $(TARGETS)

.PHONY: mutation
mutation: node_modules/.installed system-packages ## whether the tests notice changes of src/protocol and src/verifier; fails under 85 %; FILES="src/protocol/a.ts src/protocol/b.ts" for some
	@npx stryker run $(if $(FILES),--mutate "$$(echo $(FILES) | tr ' ' ,)")

.PHONY: bench
bench: build tools system-packages envoy-demo image-tools sdk-tools ## what the request plane costs, against floors measured in the same run; PARTS="check denials" runs some
	@node .build/bench/main.js $(PARTS)

.PHONY: bench-soak
bench-soak: build tools ## half an hour of steady load: whether memory stays flat
	@node .build/bench/main.js soak

.PHONY: bench-control
bench-control: build tools system-packages envoy-demo ## how fast decisions reach verifiers, and what 100,000 keys, 20 open consoles and large declarations cost Control, and how soon the console is there; PARTS="declarations" runs some
	@node .build/bench/control/main.js $(PARTS)

.PHONY: build
build: node_modules/.installed ## compile src/ to dist/
	@echo 'compiling src/ to dist/' >&2
	@npm run --silent build

.PHONY: tools
tools: node_modules/.installed
	@npm run --silent build:tools

.PHONY: packages
packages: node_modules/.installed ## compile the npm workspaces: @proofgate/client in sdk/node, @proofgate/middleware in packages/middleware
	@npm run --silent build:packages

.PHONY: openapi
openapi: build ## write docs/reference/openapi.json and docs/reference/broker-openapi.json, from what the programs serve
	@node scripts/openapi.mjs

.PHONY: screenshots
screenshots: build system-packages ## take pictures of the console's pages, and renew those that docs/ shows
	@mkdir -p .build/screenshots
	@PROOFGATE_TEST_SCREENSHOTS=.build/screenshots $(JEST) test/console/pages -t 'every page, light'
	@cd docs/operate/screenshots && for shown in *.png; do cp ../../../.build/screenshots/$$shown .; done

.PHONY: conformance
conformance: build system-packages envoy proxies traefik ## write what each enforcement point does with each case: test/conformance/results/*.json and the table in docs/reference/conformance.md
	@PROOFGATE_TEST_WRITE_RESULTS=1 $(JEST) test/conformance --testPathIgnorePatterns enrollment-plane differences replay-pairs deployments
	@PROOFGATE_TEST_WRITE_RESULTS=1 $(JEST) test/conformance/differences

.PHONY: vectors
vectors: node_modules/.installed ## write test/vectors/*.json from their cases
	@node scripts/make-vectors.mjs

.PHONY: reference
reference: node_modules/.installed ## write the generated tables of docs/reference/, from the code and docs/reference/openapi.json
	@PROOFGATE_TEST_WRITE_REFERENCE=1 $(JEST) test/docs/reference

.PHONY: schemas
schemas: node_modules/.installed ## write the JSON Schemas that programs load, from src/bundle/format/schema.ts
	@node scripts/make-schemas.mjs

.PHONY: chart
chart: node_modules/.installed ## write what helm/proofgate has of others: README from its values, alerts, version
	@node scripts/make-chart-files.mjs

.PHONY: lint
lint: node_modules/.installed ## format and lint (writes nothing)
	@npm run --silent lint

.PHONY: format
format: node_modules/.installed ## fix formatting and what lint can fix
	@npm run --silent format

.PHONY: types
types: node_modules/.installed ## check types
	@npm run --silent types

.PHONY: architecture
architecture: node_modules/.installed ## check import directions
	@npm run --silent architecture

.PHONY: envoy
envoy:
	@scripts/install-envoy.sh $(ENVOY_VERSIONS)

.PHONY: envoy-demo
envoy-demo:
	@scripts/install-envoy.sh $(DEMO_ENVOY_VERSION)

# Makes the certificate of the demo's token issuer.
.PHONY: openssl
openssl:
	@scripts/install-system-packages.sh openssl

.PHONY: system-packages
system-packages:
	@scripts/install-system-packages.sh

# Without Go the tests of the chart skip.
.PHONY: helm-tools
helm-tools: node_modules/.installed ## helm, helm-unittest, kubeconform, a reader of alerts, and schemas for the tests of helm/proofgate, below .cache/
	@scripts/install-helm-tools.sh

# Without Go the tests against an API server skip.
.PHONY: kubernetes
kubernetes:
	@scripts/install-kubernetes.sh

# Without Go the tests of Caddy skip.
.PHONY: proxies
proxies:
	@scripts/install-proxies.sh

# Without Go the tests of Traefik skip.
.PHONY: traefik
traefik:
	@scripts/install-traefik.sh

# Without Go the test of .github/workflows skips.
.PHONY: actionlint
actionlint:
	@scripts/install-actionlint.sh

# Without Go the tests of SPIRE skip.
.PHONY: spire
spire: ## SPIRE's server, agent and OIDC discovery provider for the tests, below .cache/; up to 25 minutes the first time
	@scripts/install-spire.sh

# Without Debian's apt the tests of the image skip.
.PHONY: image-tools
image-tools: node_modules/.installed ## Node.js 22 and libraries for the tests of the image, below .cache/
	@scripts/install-image-tools.sh

# Without Python and pip the tests of the Python SDK skip, without a JDK and Maven those of the Java SDK.
.PHONY: sdk-tools
sdk-tools:
	@scripts/install-sdk-tools.sh

# Without a JDK and Maven the test of Keycloak skips.
.PHONY: keycloak
keycloak:
	@scripts/install-keycloak.sh

.PHONY: sdk
sdk: node_modules/.installed sdk-tools ## packages of the SDKs for Node.js, Python, Go and Java, below .build/sdk
	@mkdir -p .build/sdk
	@npm pack --silent --workspace @proofgate/client --pack-destination .build/sdk
	@PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=.cache/sdk-python/packages python3 scripts/sdk/pack.py

.PHONY: test-image
test-image: build tools system-packages envoy proxies helm-tools image-tools ## the image's files against the end-to-end suite, alone in a root directory of their own
	@PROOFGATE_TEST_IMAGE=whole $(JEST) --runInBand test/image

.PHONY: sdk-reference
sdk-reference: node_modules/.installed ## write docs/reference/sdk-*.md, from the comments in the SDKs; needs Python 3.9 and Go
	@node scripts/sdk/reference/main.mjs

.PHONY: release
release: node_modules/.installed helm-tools sdk-tools ## npm package, chart, bill of materials, checksums and their signature, of the last commit: KEY=FILE
	@node scripts/release/release.mjs --key='$(KEY)'

.PHONY: verify-release
verify-release: ## whether a release is what was signed: PUBLIC_KEY=FILE, RELEASE=DIRECTORY for another than .build/release, VERSION=… for that one alone
	@node scripts/release/verify.mjs --public-key='$(PUBLIC_KEY)' $(if $(RELEASE),--release='$(RELEASE)') $(if $(VERSION),--version='$(VERSION)')

node_modules/.installed: package.json package-lock.json
	@scripts/install-packages.sh
	@touch $@

.PHONY: clean
clean: ## remove all that was built or installed here
	@rm -rf node_modules dist packages/middleware/dist sdk/node/dist .build .venv .cache
