#!/bin/sh
# Puts the Debian packages of debian.lock for the architecture $1 into the folder $2, and a status file of dpkg, which image scanners read.
# A file comes from the folder $DEBS (.cache/debs) if it is there, else from the mirror $MIRROR, else from snapshot.debian.org. All that
# counts is its SHA-256.
set -eu
arch=$1 to=$2
cd "$(dirname "$0")/../.."
cache=${DEBS:-.cache/debs} mirror=${MIRROR:-http://deb.debian.org}
lock=tools/release/debian.lock
snapshot=$(sed -n 's/^snapshot //p' "$lock")
mkdir -p "$cache" "$to"
: > "$to/status"
grep "^$arch " "$lock" | while read -r _ sum size path; do
	file=$cache/$sum.deb
	archive=${path%%/*}
	for url in "$mirror/$path" "http://snapshot.debian.org/archive/$archive/$snapshot/${path#*/}"; do
		[ -f "$file" ] && break
		curl --silent --show-error --fail --location --retry 3 --max-time 600 --max-filesize "$size" --output "$file.part" "$url" || continue
		echo "$sum  $file.part" | sha256sum --check --status || { echo "debs: $url is not the file of $lock" >&2; continue; }
		mv "$file.part" "$file"
	done
	[ -f "$file" ] || { echo "debs: no source has $path with the SHA-256 $sum" >&2; exit 1; }
	echo "$sum  $file" | sha256sum --check --status || { echo "debs: $file was changed: delete it" >&2; exit 1; }
	cp "$file" "$to/$(basename "$path")"
	dpkg-deb --field "$file" | sed '/^Package:/a Status: install ok installed' >> "$to/status"
	echo >> "$to/status"
done
