// Command sbom writes the bill of materials of an image, as CycloneDX: the modules
// recorded in its Go binary, and the Debian packages in dpkg's status file. The same
// input gives the same bytes.
package main

import (
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime/debug"

	"github.com/CycloneDX/cyclonedx-go"
)

var (
	name    = flag.String("name", "", "name of the image")
	version = flag.String("version", "", "version of the image")
	binary  = flag.String("binary", "", "the Go binary in it")
	status  = flag.String("dpkg", "", "the image's dpkg status file; empty if it has no Debian packages")
)

func main() {
	flag.Parse()
	if err := write(os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "sbom:", err)
		os.Exit(1)
	}
}

func write(to io.Writer) error {
	info, err := buildinfo.ReadFile(*binary)
	if err != nil {
		return fmt.Errorf("read what %s is made from: %w", *binary, err)
	}
	content, err := os.ReadFile(*binary)
	if err != nil {
		return err
	}
	digest := sha256.Sum256(content)
	bom := cyclonedx.NewBOM()
	bom.Metadata = &cyclonedx.Metadata{Component: &cyclonedx.Component{
		Type: cyclonedx.ComponentTypeContainer, Name: *name, Version: *version, BOMRef: "image",
	}}
	components := []cyclonedx.Component{{
		Type: cyclonedx.ComponentTypeApplication, Name: "trawl", Version: *version, BOMRef: "trawl",
		Hashes: &[]cyclonedx.Hash{{Algorithm: cyclonedx.HashAlgoSHA256, Value: hex.EncodeToString(digest[:])}},
	}}
	components = append(components, modules(info)...)
	if *status != "" {
		packages, err := packages(*status)
		if err != nil {
			return err
		}
		components = append(components, packages...)
	}
	bom.Components = &components
	return cyclonedx.NewBOMEncoder(to, cyclonedx.BOMFileFormatJSON).SetPretty(true).Encode(bom)
}

// modules returns the modules of a binary, the standard library first.
func modules(info *debug.BuildInfo) []cyclonedx.Component {
	list := []cyclonedx.Component{library("stdlib", info.GoVersion, "pkg:golang/stdlib@"+info.GoVersion)}
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		list = append(list, library(m.Path, m.Version, "pkg:golang/"+m.Path+"@"+m.Version))
	}
	return list
}

func library(name, version, purl string) cyclonedx.Component {
	return cyclonedx.Component{Type: cyclonedx.ComponentTypeLibrary, Name: name, Version: version, PackageURL: purl, BOMRef: purl}
}
