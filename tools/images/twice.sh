#!/bin/sh
# Builds the images of the roles from the last commit twice, in two folders and
# with two caches, and reports which layers differ.
#
#   PREFIX=trawl-twice BASE=trawl-debian tools/images/twice.sh
set -eu
top=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"; docker image rm --force $(docker images --quiet "$PREFIX-*") > /dev/null 2>&1 || true' EXIT
for n in 1 2; do
	git clone --quiet "$top" "$work/folder-$n"
	GOCACHE="$work/cache-$n" make --no-print-directory -C "$work/folder-$n" images PREFIX="$PREFIX" TAG="$n" VERSION=twice BASE="$BASE"
done
differ=0
for role in router searcher indexer; do
	first=$(docker image inspect --format '{{.RootFS.Layers}}' "$PREFIX-$role:1")
	second=$(docker image inspect --format '{{.RootFS.Layers}}' "$PREFIX-$role:2")
	if [ "$first" = "$second" ]; then
		echo "$role: both have the layers $first"
	else
		echo "$role: $first and $second differ"
		differ=1
	fi
done
exit $differ
