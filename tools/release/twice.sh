#!/bin/sh
# Makes the release of the last commit twice, in two folders, with two caches, in two time zones and with two masks for new files, and
# fails if any of its bytes differ. Debian packages are fetched once: their SHA-256 says that they are the same.
#
#   VERSION=0.1.0 tools/release/twice.sh
set -eu
top=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export DEBS="${DEBS:-$top/.cache/debs}"
for n in 1 2; do
	[ "$n" = 1 ] || { export TZ=Pacific/Kiritimati && umask 077; }
	git clone --quiet "$top" "$work/folder-$n"
	GOCACHE="${CACHES:-$work/cache-}$n" OUT="$work/out-$n" "$work/folder-$n/tools/release/release.sh" > /dev/null
done
diff --recursive "$work/out-1" "$work/out-2"
cat "$work/out-1/SHA256SUMS"
