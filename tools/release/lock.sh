#!/bin/sh
# Prints the Debian packages of the indexer's image, for tools/release/debian.lock: the programs that the indexer runs and all that these
# need, as Debian has them now. For each package: the architecture, the SHA-256, the size, and the path on a mirror. apt checks Debian's
# signatures, so whoever trusts the file need not. It needs apt, and Debian's keys.
#
#   tools/release/lock.sh > tools/release/debian.lock
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
chmod 755 "$work"
for archive in debian debian-security; do
	suites="bookworm bookworm-updates" && [ "$archive" = debian ] || suites=bookworm-security
	for suite in $suites; do
		echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://deb.debian.org/$archive $suite main" >> "$work/sources.list"
	done
done
echo "# Written by tools/release/lock.sh. Where a mirror no longer has a file, snapshot.debian.org has it as of"
date --utc '+snapshot %Y%m%dT%H%M%SZ'
for arch in amd64 arm64; do
	state=$work/$arch
	mkdir -p "$state/lists/partial" "$state/cache/archives/partial" && : > "$state/status"
	apt() {
		tool=$1 && shift
		"$tool" -qq -o "APT::Architecture=$arch" -o "APT::Architectures=$arch" -o "Dir::Etc::SourceList=$work/sources.list" -o Dir::Etc::SourceParts=/dev/null \
			-o Dir::Etc::Preferences=/dev/null -o Dir::Etc::PreferencesParts=/dev/null \
			-o "Dir::State=$state" -o "Dir::State::status=$state/status" -o "Dir::Cache=$state/cache" "$@"
	}
	apt apt-get update >&2
	apt apt-get install --print-uris --yes --no-install-recommends base-files coreutils dash git libc-bin openssh-client > "$state/uris"
	sed "s|^'http://deb.debian.org/\([^']*\)' \([^ ]*\)_.*|\1 \2|" "$state/uris" | while read -r path package; do
		# The name is PACKAGE_VERSION, with the colon of an epoch escaped.
		apt apt-cache show "${package%%_*}=$(echo "${package#*_}" | sed 's/%3a/:/')" | awk -v path="$path" -v arch="$arch" '
			$1 == "SHA256:" && !sum { sum = $2 } $1 == "Size:" && !size { size = $2 }
			END { if (!sum) exit 1; print arch, sum, size, path }'
	done | LC_ALL=C sort -k 4
done
