package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// user is the id of the user and of the group that own the cache's folder and run the binary.
const user = 65532

// Image is what routers and searchers run.
type Image struct {
	Version, Revision string
	// Created is the time of the image and of all files in it.
	Created   time.Time
	Platforms []Platform
}

// Platform is what the image holds for Linux on one architecture, as Go names it.
type Platform struct {
	Architecture string
	Binary, Bill []byte
}

// Media types of the OCI's image specification.
const (
	typeIndex    = "application/vnd.oci.image.index.v1+json"
	typeManifest = "application/vnd.oci.image.manifest.v1+json"
	typeConfig   = "application/vnd.oci.image.config.v1+json"
	typeLayer    = "application/vnd.oci.image.layer.v1.tar+gzip"
)

// descriptor names a blob.
type descriptor struct {
	MediaType   string            `json:"mediaType"`
	Digest      string            `json:"digest"`
	Size        int               `json:"size"`
	Platform    *platform         `json:"platform,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

type platform struct {
	Architecture string `json:"architecture"`
	OS           string `json:"os"`
}

type index struct {
	SchemaVersion int          `json:"schemaVersion"`
	MediaType     string       `json:"mediaType"`
	Manifests     []descriptor `json:"manifests"`
}

type manifest struct {
	SchemaVersion int          `json:"schemaVersion"`
	MediaType     string       `json:"mediaType"`
	Config        descriptor   `json:"config"`
	Layers        []descriptor `json:"layers"`
}

type imageConfig struct {
	platform

	Created string   `json:"created"`
	Config  settings `json:"config"`
	RootFS  rootFS   `json:"rootfs"`
}

type settings struct {
	User         string
	ExposedPorts map[string]struct{}
	Env          []string
	Entrypoint   []string
	Labels       map[string]string
}

type rootFS struct {
	Type    string   `json:"type"`
	DiffIDs []string `json:"diff_ids"`
}

// settings are those of the target serving in tools/images/Dockerfile.
func (i *Image) settings() settings {
	const label = "org.opencontainers.image."
	return settings{
		User:         fmt.Sprintf("%d:%d", user, user),
		ExposedPorts: map[string]struct{}{"7430/tcp": {}, "7431/tcp": {}, "7440/tcp": {}, "7441/tcp": {}},
		Env: []string{
			"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
			"TRAWL_ROUTER_GRPC=:7430", "TRAWL_ROUTER_HTTP=:7431", "TRAWL_SEARCHER_GRPC=:7440", "TRAWL_SEARCHER_HTTP=:7441",
			"TRAWL_SEARCHER_CACHE_DIR=/var/cache/trawl/searcher",
		},
		Entrypoint: []string{"/trawl"},
		Labels: map[string]string{
			label + "title": "trawl-serving", label + "description": "Takes calls, holds shards and searches them",
			label + "source": "https://github.com/trawl-search/trawl", label + "licenses": "Apache-2.0",
			label + "version": i.Version, label + "revision": i.Revision, label + "created": i.Created.Format(time.RFC3339),
		},
	}
}

// layout collects the blobs of an OCI image layout. The first error stays.
type layout struct {
	blobs map[string][]byte
	err   error
}

func (l *layout) add(mediaType string, blob []byte) descriptor {
	digest := fmt.Sprintf("%x", sha256.Sum256(blob))
	l.blobs[digest] = blob
	return descriptor{MediaType: mediaType, Digest: "sha256:" + digest, Size: len(blob)}
}

func (l *layout) addJSON(mediaType string, value any) descriptor {
	text, err := json.Marshal(value)
	l.err = errors.Join(l.err, err)
	return l.add(mediaType, text)
}

// Write writes the image as a tar archive of an OCI image layout.
func (i *Image) Write(w io.Writer) error {
	l := &layout{blobs: map[string][]byte{}}
	all := index{SchemaVersion: 2, MediaType: typeIndex}
	for _, p := range i.Platforms {
		layer, err := i.layer(p)
		if err != nil {
			return fmt.Errorf("layer for %s: %w", p.Architecture, err)
		}
		var packed bytes.Buffer
		z := gzip.NewWriter(&packed)
		if _, err := z.Write(layer); err != nil {
			return fmt.Errorf("compress a layer: %w", err)
		}
		if err := z.Close(); err != nil {
			return fmt.Errorf("compress a layer: %w", err)
		}
		on := platform{Architecture: p.Architecture, OS: "linux"}
		config := l.addJSON(typeConfig, imageConfig{
			platform: on, Created: i.Created.Format(time.RFC3339), Config: i.settings(),
			RootFS: rootFS{Type: "layers", DiffIDs: []string{fmt.Sprintf("sha256:%x", sha256.Sum256(layer))}},
		})
		d := l.addJSON(typeManifest, manifest{SchemaVersion: 2, MediaType: typeManifest, Config: config, Layers: []descriptor{l.add(typeLayer, packed.Bytes())}})
		d.Platform = &on
		all.Manifests = append(all.Manifests, d)
	}
	top := l.addJSON(typeIndex, all)
	top.Annotations = map[string]string{"org.opencontainers.image.ref.name": i.Version}
	entry, err := json.Marshal(index{SchemaVersion: 2, MediaType: typeIndex, Manifests: []descriptor{top}})
	if err := errors.Join(l.err, err); err != nil {
		return fmt.Errorf("encode the image: %w", err)
	}
	files := map[string][]byte{"oci-layout": []byte(`{"imageLayoutVersion":"1.0.0"}`), "index.json": entry}
	for digest, blob := range l.blobs {
		files["blobs/sha256/"+digest] = blob
	}
	a := archive{tar.NewWriter(w), i.Created}
	for _, dir := range []string{"blobs/", "blobs/sha256/"} {
		err = errors.Join(err, a.folder(dir, 0))
	}
	for _, name := range sortedNames(files) {
		err = errors.Join(err, a.file(name, 0o644, files[name]))
	}
	return errors.Join(err, a.Close())
}

// layer is the file system of a platform, as a tar archive.
func (i *Image) layer(p Platform) ([]byte, error) {
	var b bytes.Buffer
	a := archive{tar.NewWriter(&b), i.Created}
	err := errors.Join(
		a.folder("etc/", 0), a.folder("etc/ssl/", 0), a.folder("etc/ssl/certs/", 0), a.file("etc/ssl/certs/ca-certificates.crt", 0o644, authorities()),
		a.file("serving.cdx.json", 0o644, p.Bill), a.file("trawl", 0o755, p.Binary),
		a.folder("var/", 0), a.folder("var/cache/", 0), a.folder("var/cache/trawl/", user), a.folder("var/cache/trawl/searcher/", user),
		a.Close(),
	)
	return b.Bytes(), err
}

// authorities are the public certificate authorities, PEM. Those that are trusted for some certificates only are
// left out: a file of certificates cannot say so.
func authorities() []byte {
	var b bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint == nil {
			b.Write(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}))
		}
	}
	return b.Bytes()
}

// archive is a tar archive, all entries of which have one time.
type archive struct {
	*tar.Writer

	at time.Time
}

func (a archive) folder(name string, owner int) error {
	return a.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: name, Mode: 0o755, Uid: owner, Gid: owner, ModTime: a.at, Format: tar.FormatPAX})
}

func (a archive) file(name string, mode int64, content []byte) error {
	err := a.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: mode, Size: int64(len(content)), ModTime: a.at, Format: tar.FormatPAX})
	if err != nil {
		return err
	}
	_, err = a.Write(content)
	return err
}

// sortedNames has the layout's own files first, as readers of a stream like them.
func sortedNames(files map[string][]byte) []string {
	var names []string
	for name := range files {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int {
		if inA, inB := strings.HasPrefix(a, "blobs/"), strings.HasPrefix(b, "blobs/"); inA != inB {
			if inA {
				return 1
			}
			return -1
		}
		return strings.Compare(a, b)
	})
	return names
}
