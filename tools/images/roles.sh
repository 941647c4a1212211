#!/bin/sh
# Makes the images of the roles, $PREFIX-ROLE:$TAG, from $BIN (bin/trawl), with a bill
# of materials of each beside (in .cache/images) and in it. What goes in has one
# time, that of the commit: the same input makes the same layers.
#
#   PREFIX=trawl TAG=v1 VERSION=v1 COMMIT=0123abc CREATED=2026-01-02T03:04:05Z BASE=debian:bookworm-slim tools/images/roles.sh
set -eu
cd "$(dirname "$0")/../.."
binary=${BIN:-bin/trawl}
out=.cache/images
rm -rf "$out" && mkdir -p "$out/context/bin"
(cd tools/sbom && go build -o "../../$out/sbom" .)
cp "$binary" "$out/context/bin/trawl"
chmod 755 "$out/context/bin/trawl"
for role in router searcher indexer; do
	set -- --name="$PREFIX-$role" --version="$VERSION" --binary="$binary"
	if [ "$role" = indexer ]; then
		# The packages are known once the image is made; it is made from the same layers again.
		: > "$out/context/bin/$role.cdx.json"
		touch --date="$CREATED" "$out"/context/bin/*
		build=$(docker build --quiet --file "services/$role/Dockerfile" --build-arg "BASE=$BASE" "$out/context")
		docker run --rm --entrypoint /bin/cat "$build" /var/lib/dpkg/status > "$out/dpkg-status"
		set -- "$@" --dpkg="$out/dpkg-status"
	fi
	"$out/sbom" "$@" > "$out/$role.cdx.json"
	cp "$out/$role.cdx.json" "$out/context/bin/$role.cdx.json"
	touch --date="$CREATED" "$out"/context/bin/*
	docker build --quiet --file "services/$role/Dockerfile" --tag "$PREFIX-$role:$TAG" --build-arg "BASE=$BASE" \
		--build-arg "VERSION=$VERSION" --build-arg "REVISION=$COMMIT" --build-arg "CREATED=$CREATED" "$out/context" > /dev/null
	echo "$PREFIX-$role:$TAG"
done
