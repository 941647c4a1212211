#!/bin/sh
# Makes the image $1, a Debian with the programs that the indexer runs (git, ssh),
# without an image registry: mmdebstrap unpacks packages, docker imports them.
# The same packages make the same layer, because all its files have the same time.
set -eu
docker info > /dev/null # before anything is downloaded
image=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
chmod 755 "$work"
mmdebstrap=$("$(dirname "$0")/mmdebstrap.sh" "$work")

# dpkg's status file, which image scanners read, for packages that dpkg did not install.
cat > "$work/status.sh" <<'END'
for deb in "$1"/var/cache/apt/archives/*.deb; do
	dpkg-deb --field "$deb" | sed '/^Package:/a Status: install ok installed'
	echo
done > "$1/var/lib/dpkg/status"
END

# The packages are unpacked but not configured: the hooks do the parts of their
# configuration that are needed.
export SOURCE_DATE_EPOCH=0
"$mmdebstrap" --quiet --variant=extract \
	--include=ca-certificates,coreutils,dash,git,libc-bin,openssh-client \
	--extract-hook='echo root:x:0:0::/root:/bin/sh > "$1/etc/passwd"' \
	--extract-hook='echo trawl:x:65532:65532::/nonexistent:/usr/sbin/nologin >> "$1/etc/passwd"' \
	--extract-hook='cat "$1"/usr/share/ca-certificates/mozilla/*.crt > "$1/etc/ssl/certs/ca-certificates.crt"' \
	--extract-hook='install -d -o 65532 -g 65532 "$1/var/cache/trawl" "$1/var/cache/trawl/indexer"' \
	--extract-hook='sh '"$work"'/status.sh "$1"' \
	--extract-hook='rm -rf "$1"/usr/share/doc "$1"/usr/share/man "$1"/usr/share/locale "$1"/var/cache/apt' \
	bookworm "$work/debian.tar" >&2
docker import "$work/debian.tar" "$image"
