#!/bin/sh
# Makes the images of the roles, $PREFIX-ROLE:$TAG, from $BIN (bin/trawl), with a bill
# of materials for each, in the image and in .cache/images. Routers and searchers have
# one image under two names. All files have the time of the commit, so the same input
# makes the same layers.
#
#   PREFIX=trawl TAG=v1 VERSION=v1 COMMIT=0123abc CREATED=2026-01-02T03:04:05Z BASE=debian:bookworm-slim tools/images/roles.sh
set -eu
cd "$(dirname "$0")/../.."
binary=${BIN:-bin/trawl}
out=.cache/images
rm -rf "$out" && mkdir -p "$out/context/bin"
(cd tools/sbom && go build -o "../../$out/sbom" .)
case $BASE in
*@sha256:* | trawl-debian*) ;;
*) echo "the indexer's image is made on $BASE as it is today: for a release give its digest too, BASE=$BASE@sha256:DIGEST" >&2 ;;
esac
cp "$binary" "$out/context/bin/trawl"
chmod 755 "$out/context/bin/trawl"
for target in serving indexing; do
	roles="router searcher"
	set -- --name="$PREFIX-$target" --version="$VERSION" --binary="$binary"
	if [ "$target" = indexing ]; then
		roles=indexer
		# The packages are known only once the image exists; it is made again from the same layers.
		: > "$out/context/bin/$target.cdx.json"
		touch --date="$CREATED" "$out"/context/bin/*
		build=$(docker build --quiet --file tools/images/Dockerfile --target "$target" --build-arg "BASE=$BASE" "$out/context")
		docker run --rm --entrypoint /bin/cat "$build" /var/lib/dpkg/status > "$out/dpkg-status"
		set -- "$@" --dpkg="$out/dpkg-status"
	fi
	"$out/sbom" "$@" > "$out/$target.cdx.json"
	cp "$out/$target.cdx.json" "$out/context/bin/$target.cdx.json"
	touch --date="$CREATED" "$out"/context/bin/*
	set --
	for role in $roles; do set -- "$@" --tag "$PREFIX-$role:$TAG"; done
	docker build --quiet --file tools/images/Dockerfile --target "$target" "$@" --build-arg "BASE=$BASE" \
		--build-arg "VERSION=$VERSION" --build-arg "REVISION=$COMMIT" --build-arg "CREATED=$CREATED" "$out/context" > /dev/null
	# Without certificate authorities, https does not work.
	container=$(docker create "$PREFIX-${roles%% *}:$TAG")
	authorities=$(docker cp "$container:/etc/ssl/certs/ca-certificates.crt" - | tar --extract --to-stdout | grep --count 'BEGIN CERTIFICATE' || true)
	docker rm "$container" > /dev/null
	if [ "${authorities:-0}" -lt 50 ]; then
		echo "the image $target holds ${authorities:-0} public certificate authorities, want 50 or more" >&2
		exit 1
	fi
	for role in $roles; do echo "$PREFIX-$role:$TAG"; done
done
