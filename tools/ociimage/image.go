package main

import (
	"archive/tar"
	"bytes"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// user is the id of the user and group that own the cache folder and run the binary.
const user = 65532

// Target is what an image is for. It is the name of a target of tools/images/Dockerfile.
type Target string

// Serving is the image of routers and searchers, Indexing that of indexers, with Debian's git and ssh.
const (
	Serving  Target = "serving"
	Indexing Target = "indexing"
)

// Image is the image of some roles.
type Image struct {
	Target            Target
	Version, Revision string
	// Created is the time of the image and of all files in it.
	Created   time.Time
	Platforms []Platform
}

// Platform is the content of the image for Linux on one architecture, in Go's naming.
type Platform struct {
	Architecture string
	Binary, Bill []byte
	// Packages is a folder of Debian packages with their status file; it is empty for Serving.
	Packages string
}

// settings are the settings of the target in tools/images/Dockerfile.
func (i *Image) settings() v1.Config {
	const label = "org.opencontainers.image."
	c := v1.Config{
		User:       fmt.Sprintf("%d:%d", user, user),
		Env:        []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"},
		Entrypoint: []string{"/trawl"},
		Labels: map[string]string{
			label + "title": "trawl-" + string(i.Target), label + "description": "Takes calls, holds shards and searches them",
			label + "source": "https://github.com/trawl-search/trawl", label + "licenses": "Apache-2.0",
			label + "version": i.Version, label + "revision": i.Revision, label + "created": i.Created.Format(time.RFC3339),
		},
	}
	if i.Target == Indexing {
		c.Labels[label+"description"] = "Fetches repositories and publishes their indexes"
		c.Volumes = map[string]struct{}{"/" + i.cache(): {}}
		return c
	}
	c.ExposedPorts = map[string]struct{}{"7430/tcp": {}, "7431/tcp": {}, "7440/tcp": {}, "7441/tcp": {}}
	c.Env = append(c.Env, "TRAWL_ROUTER_GRPC=:7430", "TRAWL_ROUTER_HTTP=:7431", "TRAWL_SEARCHER_GRPC=:7440", "TRAWL_SEARCHER_HTTP=:7441",
		"TRAWL_SEARCHER_CACHE_DIR=/"+i.cache())
	return c
}

// cache is the folder for the cache, without the slash before it.
func (i *Image) cache() string {
	if i.Target == Indexing {
		return "var/cache/trawl/indexer"
	}
	return "var/cache/trawl/searcher"
}

// Write writes the image as a tar archive of an OCI image layout.
func (i *Image) Write(w io.Writer) (err error) {
	all := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, p := range i.Platforms {
		image, err := i.image(p)
		if err != nil {
			return fmt.Errorf("image for %s: %w", p.Architecture, err)
		}
		all = mutate.AppendManifests(all, mutate.IndexAddendum{
			Add: image, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: p.Architecture}},
		})
	}
	dir, err := os.MkdirTemp("", "ociimage")
	if err != nil {
		return fmt.Errorf("make a folder for the layout: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	files, err := layout.Write(dir, empty.Index)
	if err != nil {
		return fmt.Errorf("begin the layout: %w", err)
	}
	name := map[string]string{"org.opencontainers.image.ref.name": i.Version}
	if err := files.AppendIndex(all, layout.WithAnnotations(name)); err != nil {
		return fmt.Errorf("write the layout: %w", err)
	}
	return archiveFolder(w, dir, i.Created)
}

func (i *Image) image(p Platform) (v1.Image, error) {
	layers, err := i.layers(p)
	if err != nil {
		return nil, err
	}
	image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	if image, err = mutate.AppendLayers(image, layers...); err != nil {
		return nil, err
	}
	config, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	config.Architecture, config.OS, config.Created, config.Config = p.Architecture, "linux", v1.Time{Time: i.Created}, i.settings()
	return mutate.ConfigFile(image, config)
}

// layers returns the layers of a platform: the Debian packages if there are any, which stay the same from release to release, and the rest.
func (i *Image) layers(p Platform) (layers []v1.Layer, err error) {
	var archives [][]byte
	if i.Target == Indexing {
		var b bytes.Buffer
		if err := debianFiles(p.Packages, &b); err != nil {
			return nil, err
		}
		archives = append(archives, b.Bytes())
	}
	files, err := i.files(p)
	if err != nil {
		return nil, err
	}
	for _, files := range append(archives, files) {
		layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(files)), nil }, tarball.WithMediaType(types.OCILayer))
		if err != nil {
			return nil, err
		}
		layers = append(layers, layer)
	}
	return layers, nil
}

// files returns the files of Trawl for a platform as a tar archive.
func (i *Image) files(p Platform) ([]byte, error) {
	var b bytes.Buffer
	a := archive{tar.NewWriter(&b), i.Created}
	var users error
	if i.Target == Indexing { // ssh wants to know who runs it
		users = errors.Join(
			a.file("etc/group", 0o644, fmt.Appendf(nil, "root:x:0:\ntrawl:x:%d:\n", user)),
			a.file("etc/passwd", 0o644, fmt.Appendf(nil, "root:x:0:0::/root:/bin/sh\ntrawl:x:%d:%d::/nonexistent:/usr/sbin/nologin\n", user, user)),
		)
	}
	err := errors.Join(
		users, a.folder("etc/", 0), a.folder("etc/ssl/", 0), a.folder("etc/ssl/certs/", 0), a.file("etc/ssl/certs/ca-certificates.crt", 0o644, authorities()),
		a.file(string(i.Target)+".cdx.json", 0o644, p.Bill), a.file("trawl", 0o755, p.Binary),
		a.folder("var/", 0), a.folder("var/cache/", 0), a.folder("var/cache/trawl/", user), a.folder(i.cache()+"/", user),
		a.Close(),
	)
	return b.Bytes(), err
}

// authorities returns the public certificate authorities as PEM. It omits those that are trusted only for some
// certificates, because a file of certificates cannot express that.
func authorities() []byte {
	var b bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint == nil {
			b.Write(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}))
		}
	}
	return b.Bytes()
}

// archive is a tar archive whose entries all have one time.
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

// archiveFolder writes the contents of a folder, sorted by name.
func archiveFolder(w io.Writer, dir string, at time.Time) error {
	a := archive{tar.NewWriter(w), at}
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || path == dir {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		if entry.IsDir() {
			return a.folder(name+"/", 0)
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return a.file(name, 0o644, content)
	})
	if err := errors.Join(err, a.Close()); err != nil {
		return fmt.Errorf("archive the layout: %w", err)
	}
	return nil
}
