#!/bin/sh
# Makes the image $1, the Debian of a Kubernetes node of integration/k8s, without
# an image registry: containerd and the programs that it and a kubelet call.
set -eu
image=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
chmod 755 "$work"
mmdebstrap=$("$(dirname "$0")/mmdebstrap.sh" "$work")

# The packages are unpacked but not configured; the node's first process does the
# parts of that which are needed.
"$mmdebstrap" --quiet --variant=extract \
	--include=bash,containerd,containernetworking-plugins,coreutils,iproute2,iptables,mount,runc,util-linux \
	--extract-hook='ln -sf bash "$1/bin/sh"' \
	--extract-hook='rm -rf "$1"/usr/share/doc "$1"/usr/share/man "$1"/usr/share/locale "$1"/var/cache/apt' \
	bookworm "$work/node.tar" >&2
docker import "$work/node.tar" "$image"
