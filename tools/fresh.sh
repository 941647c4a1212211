#!/bin/sh
# Runs the make targets $@ as on a fresh machine: in a clone of the last commit, with
# an empty home folder and empty caches of Go and of Trawl. Go reaches its modules
# with the settings of this machine. Progress goes to standard error.
#
#   tools/fresh.sh demo test
set -eu
top=$(cd "$(dirname "$0")/.." && pwd)
work=$(mktemp -d "${TMPDIR:-/tmp}/trawl-fresh.XXXXXX")

# Go makes its module cache read-only.
trap 'chmod -R u+w "$work" && rm -rf "$work"' EXIT
trap 'exit 130' INT TERM

for setting in GOPROXY GOSUMDB GOPRIVATE GONOPROXY GONOSUMDB GOINSECURE GOTOOLCHAIN; do
	export "$setting=$(go env $setting)"
done
# A fresh machine does not have the variables that the calling make and Go have set.
unset MAKEFLAGS MFLAGS MAKELEVEL GOFLAGS GOENV GOWORK CGO_ENABLED
export HOME="$work/home" XDG_CACHE_HOME="$work/cache" XDG_CONFIG_HOME="$work/config"
export GOPATH="$work/go" GOMODCACHE="$work/go/pkg/mod" GOCACHE="$work/cache/go-build"
mkdir -p "$HOME"

echo "fresh: cloning $(git -C "$top" rev-parse --short HEAD) to $work" >&2
git clone --quiet "$top" "$work/trawl"
for target in "$@"; do
	began=$(date +%s)
	echo "fresh: make $target" >&2
	make --no-print-directory -C "$work/trawl" "$target" || {
		echo "fresh: make $target failed after $(($(date +%s) - began))s" >&2
		exit 1
	}
	echo "fresh: make $target passed in $(($(date +%s) - began))s" >&2
done
