#!/bin/sh
# Makes the files of a release in $OUT (dist): for each platform an archive of the binary
# and its bill of materials, the image of routers and searchers, the chart, checksums, and
# a statement of provenance. The same commit makes the same bytes: all times are that of
# the commit.
#
#   VERSION=0.1.0 OUT=dist tools/release/release.sh
set -eu
cd "$(dirname "$0")/../.."
out=${OUT:-dist}
source=https://github.com/trawl-search/trawl
cli=github.com/trawl-search/trawl/cmd/trawl/internal/cli
chart=$(sed -n 's/^version: //p' charts/trawl/Chart.yaml)
if [ "$VERSION" != "$chart" ]; then
	echo "release: VERSION is $VERSION, the version of charts/trawl/Chart.yaml is $chart: they must be the same" >&2
	exit 1
fi
if [ -n "$(git status --porcelain)" ]; then
	echo "release: the work tree has changes, so what it makes could not be made again: commit them first" >&2
	exit 1
fi
commit=$(git rev-parse HEAD)
time=$(git log -1 --format=%ct)
rm -rf "$out" && mkdir -p "$out"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# pack ARCHIVE FOLDER NAME: an archive that depends only on names, contents and modes.
pack() {
	tar --create --sort=name --mtime="@$time" --owner=0 --group=0 --numeric-owner --mode='u=rwX,go=rX' --directory="$2" "$3" | gzip --no-name --best > "$1"
}

(cd tools && go build -o "$work/" ./sbom ./ociimage)
images=
for arch in amd64 arm64; do
	name=trawl-$VERSION-linux-$arch
	mkdir -p "$work/$name"
	GOOS=linux GOARCH=$arch CGO_ENABLED=0 go build -trimpath -buildvcs=false \
		-ldflags "-s -w -buildid= -X $cli.version=$VERSION -X $cli.builtFrom=$commit" -o "$work/$name/trawl" ./cmd/trawl
	cp LICENSE README.md CHANGELOG.md UPGRADING.md "$work/$name/"
	pack "$out/$name.tar.gz" "$work" "$name"
	"$work/sbom" --name="$name" --version="$VERSION" --binary="$work/$name/trawl" > "$out/$name.cdx.json"
	"$work/sbom" --name=trawl-serving --version="$VERSION" --binary="$work/$name/trawl" > "$work/serving-$arch.cdx.json"
	images="$images $arch=$work/$name/trawl,$work/serving-$arch.cdx.json"
done
# shellcheck disable=SC2086 # a word for each platform
"$work/ociimage" --version="$VERSION" --revision="$commit" --created="$(date --utc --date="@$time" +%Y-%m-%dT%H:%M:%SZ)" $images > "$out/trawl-serving-$VERSION.oci.tar"
git archive --prefix=chart/ HEAD charts/trawl | tar --extract --directory="$work"
pack "$out/trawl-chart-$VERSION.tgz" "$work/chart/charts" trawl

# The statement is an in-toto statement with SLSA's provenance predicate.
subjects=$(cd "$out" && sha256sum -- * | while read -r digest file; do
	printf '%s{"name":"%s","digest":{"sha256":"%s"}}' "${comma:-}" "$file" "$digest"
	comma=,
done)
cat > "$out/provenance.intoto.json" <<END
{"_type":"https://in-toto.io/Statement/v1","subject":[$subjects],
"predicateType":"https://slsa.dev/provenance/v1","predicate":{"buildDefinition":{
"buildType":"$source/blob/main/tools/release/release.sh","externalParameters":{"version":"$VERSION"},
"internalParameters":{"go":"$(go env GOVERSION)"},
"resolvedDependencies":[{"uri":"git+$source","digest":{"gitCommit":"$commit"}}]},
"runDetails":{"builder":{"id":"$source/blob/main/tools/release/release.sh"}}}}
END
(cd "$out" && sha256sum -- * > "$work/sums" && mv "$work/sums" SHA256SUMS && cat SHA256SUMS)
