// Command ociimage writes an image for several architectures as one file: a tar archive of an OCI image layout. It needs neither a registry
// nor a container engine. The image for the target serving, which routers and searchers run, holds the binary, its bill of materials,
// Mozilla's certificate authorities as the module golang.org/x/crypto/x509roots/fallback has them, and a folder for the cache. That for
// indexing also holds the Debian packages in a folder, which dpkg-deb unpacks. The same input makes the same bytes.
//
//	ociimage --target=serving --version=0.1.0 --revision=0123abc --created=2026-01-02T03:04:05Z amd64=trawl,trawl.cdx.json arm64=… > image.tar
//	ociimage --target=indexing … amd64=trawl,trawl.cdx.json,packages-amd64 arm64=… > image.tar
//	skopeo copy --all oci-archive:image.tar docker://REGISTRY/trawl-router:0.1.0
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"time"
)

var (
	target   = flag.String("target", string(Serving), "what the image is for: serving or indexing")
	version  = flag.String("version", "", "version of Trawl")
	revision = flag.String("revision", "", "commit that the binaries were built from")
	created  = flag.String("created", "", "time of everything in the image, as in RFC 3339")
)

func main() {
	flag.Parse()
	if err := run(flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "ociimage:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	at, err := time.Parse(time.RFC3339, *created)
	if err != nil {
		return fmt.Errorf("--created: %w", err)
	}
	if *version == "" || len(args) == 0 {
		return errors.New("want --version, and ARCHITECTURE=BINARY,BILL for each architecture")
	}
	if t := Target(*target); t != Serving && t != Indexing {
		return fmt.Errorf("--target is %q: want serving or indexing", t)
	}
	image := Image{Target: Target(*target), Version: *version, Revision: *revision, Created: at.UTC()}
	for _, arg := range args {
		architecture, files, _ := strings.Cut(arg, "=")
		binary, bill, ok := strings.Cut(files, ",")
		bill, packages, debian := strings.Cut(bill, ",")
		if !ok || debian != (image.Target == Indexing) {
			return fmt.Errorf("%q: want ARCHITECTURE=BINARY,BILL, and for indexing ,PACKAGES after it", arg)
		}
		p := Platform{Architecture: architecture, Packages: packages}
		if p.Binary, err = os.ReadFile(binary); err != nil {
			return fmt.Errorf("read the binary: %w", err)
		}
		if p.Bill, err = os.ReadFile(bill); err != nil {
			return fmt.Errorf("read the bill of materials: %w", err)
		}
		image.Platforms = append(image.Platforms, p)
	}
	return image.Write(os.Stdout)
}
