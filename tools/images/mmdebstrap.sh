#!/bin/sh
# Prints the path of mmdebstrap. If it is not installed, its package is unpacked
# into the folder $1 for this one use.
set -eu
command -v mmdebstrap || {
	echo "fetching mmdebstrap" >&2
	(cd "$1" && { apt-get download -qq mmdebstrap || { apt-get update -qq && apt-get download -qq mmdebstrap; }; }) >&2
	dpkg-deb -x "$1"/mmdebstrap_*.deb "$1/mmdebstrap"
	echo "$1/mmdebstrap/usr/bin/mmdebstrap"
}
