package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/CycloneDX/cyclonedx-go"
)

const dpkg = `Package: git
Status: install ok installed
Version: 1:2.39.5-0+deb12u2
Architecture: amd64
Description: fast
 Package: this is a line of the description

Package: dash
Version: 0.5.12-2
Architecture: amd64
`

// TestBill: the bill has the modules of a binary, which is the test itself, and
// the packages of a Debian, and is the same each time.
func TestBill(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "status")
	if err := os.WriteFile(file, []byte(dpkg), 0o600); err != nil {
		t.Fatal(err)
	}
	*name, *version, *binary, *status = "trawl-indexer", "v1", self, file
	var first, second bytes.Buffer
	for _, to := range []*bytes.Buffer{&first, &second} {
		if err := write(to); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(first.Bytes(), second.Bytes()) {
		t.Error("two bills of the same differ")
	}
	var bom cyclonedx.BOM
	if err := cyclonedx.NewBOMDecoder(&first, cyclonedx.BOMFileFormatJSON).Decode(&bom); err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	for _, c := range *bom.Components {
		found[c.PackageURL] = true
	}
	for _, want := range []string{
		"pkg:golang/github.com/CycloneDX/cyclonedx-go@v0.12.0",
		"pkg:deb/debian/git@1:2.39.5-0+deb12u2?arch=amd64&distro=bookworm", "pkg:deb/debian/dash@0.5.12-2?arch=amd64&distro=bookworm",
	} {
		if !found[want] {
			t.Errorf("%s is not in the bill: %v", want, found)
		}
	}
}

// TestNoDebian: a status file without packages is not from a Debian.
func TestNoDebian(t *testing.T) {
	if list, err := packages(os.DevNull); err == nil {
		t.Errorf("there are %v", list)
	}
}
