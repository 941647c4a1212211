#!/bin/sh
# Makes the files of a release in $OUT (dist): for each platform an archive of the binary with its manual
# pages and completions and with compose.yaml, and its bill of materials; Debian packages, a Homebrew
# formula, the image of routers and searchers and that of indexers, the chart, checksums, and a statement of
# provenance. The same commit makes the same bytes: all times are that of the commit, and the indexers' image has
# the Debian packages of debian.lock. It needs dpkg-deb and curl.
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

# build OS ARCH FILE: the binary for a platform.
build() {
	GOOS=$1 GOARCH=$2 CGO_ENABLED=0 go build -trimpath -buildvcs=false \
		-ldflags "-s -w -buildid= -X $cli.version=$VERSION -X $cli.builtFrom=$commit" -o "$3" ./cmd/trawl
}

# deb ARCH FOLDER: a Debian package of the archive's files, and a systemd unit for trawl up.
deb() {
	root=$work/deb-$1 doc=$work/deb-$1/usr/share/doc/trawl
	mkdir -p "$root/DEBIAN" "$root/usr/bin" "$root/usr/share/man/man1" "$doc" "$root/usr/share/bash-completion/completions" \
		"$root/usr/share/zsh/vendor-completions" "$root/usr/share/fish/vendor_completions.d" "$root/usr/lib/systemd/system"
	cp "$2/trawl" "$root/usr/bin/"
	cp "$2"/man/*.1 "$root/usr/share/man/man1/" && gzip --no-name --best "$root"/usr/share/man/man1/*.1
	cp "$2/completions/trawl.bash" "$root/usr/share/bash-completion/completions/trawl"
	cp "$2/completions/_trawl" "$root/usr/share/zsh/vendor-completions/"
	cp "$2/completions/trawl.fish" "$root/usr/share/fish/vendor_completions.d/"
	cp tools/release/trawl.service "$root/usr/lib/systemd/system/"
	cp README.md CHANGELOG.md UPGRADING.md "$doc/" && cp LICENSE "$doc/copyright"
	cat > "$root/DEBIAN/control" <<END
Package: trawl
Version: $VERSION
Architecture: $1
Maintainer: Trawl <https://github.com/trawl-search/trawl>
Depends: git
Recommends: ca-certificates, openssh-client
Section: vcs
Priority: optional
Homepage: https://github.com/trawl-search/trawl
Description: search of all the code of your Git repositories
 Searches repositories by substring and regular expression, on one machine or many.
END
	chmod -R u=rwX,go=rX "$root"
	SOURCE_DATE_EPOCH=$time dpkg-deb --root-owner-group --threads-max=1 -Zxz --build "$root" "$out/trawl_${VERSION}_$1.deb" > /dev/null
}

for arch in amd64 arm64; do tools/release/debs.sh "$arch" "$work/debs-$arch"; done # before the long work: a mirror may be down
(cd tools && go build -o "$work/" ./sbom ./ociimage)
build "$(go env GOHOSTOS)" "$(go env GOHOSTARCH)" "$work/trawl"
shared=$work/shared # what all platforms have; settings of whoever makes the release must not be in it
mkdir -p "$shared/completions"
env -i SOURCE_DATE_EPOCH="$time" TZ=UTC "$work/trawl" man "$shared/man" # else they have the month of today
env -i "$work/trawl" completion bash > "$shared/completions/trawl.bash"
env -i "$work/trawl" completion zsh > "$shared/completions/_trawl"
env -i "$work/trawl" completion fish > "$shared/completions/trawl.fish"
cp LICENSE README.md CHANGELOG.md UPGRADING.md compose.yaml "$shared/"
serving='' indexing=''
for platform in linux-amd64 linux-arm64 darwin-amd64 darwin-arm64; do
	os=${platform%-*} arch=${platform#*-} name=trawl-$VERSION-$platform
	cp -R "$shared" "$work/$name"
	build "$os" "$arch" "$work/$name/trawl"
	pack "$out/$name.tar.gz" "$work" "$name"
	"$work/sbom" --name="$name" --version="$VERSION" --binary="$work/$name/trawl" > "$out/$name.cdx.json"
	if [ "$os" = linux ]; then
		deb "$arch" "$work/$name"
		"$work/sbom" --name=trawl-serving --version="$VERSION" --binary="$work/$name/trawl" > "$work/serving-$arch.cdx.json"
		"$work/sbom" --name=trawl-indexing --version="$VERSION" --binary="$work/$name/trawl" --dpkg="$work/debs-$arch/status" > "$work/indexing-$arch.cdx.json"
		serving="$serving $arch=$work/$name/trawl,$work/serving-$arch.cdx.json"
		indexing="$indexing $arch=$work/$name/trawl,$work/indexing-$arch.cdx.json,$work/debs-$arch"
	fi
done
digest() { sha256sum "$out/trawl-$VERSION-$1.tar.gz" | cut -d ' ' -f 1; }
sed -e "s|@VERSION@|$VERSION|" -e "s|@SOURCE@|$source|g" -e "s|@DARWIN_AMD64@|$(digest darwin-amd64)|" -e "s|@DARWIN_ARM64@|$(digest darwin-arm64)|" \
	-e "s|@LINUX_AMD64@|$(digest linux-amd64)|" -e "s|@LINUX_ARM64@|$(digest linux-arm64)|" tools/release/trawl.rb > "$out/trawl.rb"
created=$(date --utc --date="@$time" +%Y-%m-%dT%H:%M:%SZ)
# image TARGET PLATFORM…: the image of that target.
image() {
	target=$1 && shift
	"$work/ociimage" --target="$target" --version="$VERSION" --revision="$commit" --created="$created" "$@" > "$out/trawl-$target-$VERSION.oci.tar"
}
# shellcheck disable=SC2086 # a word for each platform
image serving $serving && image indexing $indexing
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
