#!/usr/bin/env bash
# Runs all tests and checks of the project, and prints their results as the events of
# `go test -json`, for gotestsum to count. A failed step does not stop the later ones.
set -uo pipefail
cd "$(dirname "$0")/.."
failed=0

# events COMMAND...: a command that prints events.
events() { "$@" || failed=1; }

# check NAME COMMAND...: any other command, which counts as one test.
check() {
	local outcome=PASS name=$1
	shift
	{
		echo "=== RUN   $name"
		"$@" 2>&1 || outcome=FAIL
		printf '\n--- %s: %s (0.00s)\n%s\n' "$outcome" "$name" "$outcome"
		[ "$outcome" = PASS ]
	} | go tool test2json -t -p checks || failed=1
}

# skip NAME REASON: a check that cannot run here.
skip() {
	printf '=== RUN   %s\n    %s\n--- SKIP: %s (0.00s)\nPASS\n' "$1" "$2" "$1" | go tool test2json -t -p checks
}

make() { command make --no-print-directory "$@"; }

check GeneratedCode make check-generated
check Lint make lint
events make unit JSON=-json
events make processes JSON=-json
events make containers JSON=-json
# It takes another quarter of an hour, so it runs only with TRAWL_TEST_K8S.
events go test -json -short -count=1 -timeout 40m ./integration/k8s
events go -C tools test -json -count=1 -timeout 10m ./...
events make chart-test JSON=-json
check Fuzz make fuzz FUZZ=./index/regex
if command -v "$(CGO_ENABLED=1 go env CC)" >/dev/null; then
	events make race JSON=-json
else
	skip Race "the race detector needs a C compiler"
fi
check Demo make demo-short
exit $failed
