package main

import (
	"archive/tar"
	"bytes"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

func made(t *testing.T) []byte {
	t.Helper()
	image := Image{Target: Serving, Version: "0.1.0", Revision: "0123abc", Created: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Platforms: []Platform{
		{Architecture: "amd64", Binary: []byte("for amd64"), Bill: []byte("bill of amd64")},
		{Architecture: "arm64", Binary: []byte("for arm64"), Bill: []byte("bill of arm64")},
	}}
	var b bytes.Buffer
	if err := image.Write(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// unpacked returns the entries of a tar archive.
func unpacked(t *testing.T, text []byte) (contents map[string][]byte, headers map[string]*tar.Header) {
	t.Helper()
	contents, headers = map[string][]byte{}, map[string]*tar.Header{}
	for r := tar.NewReader(bytes.NewReader(text)); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return contents, headers
		}
		if err != nil {
			t.Fatal(err)
		}
		if contents[h.Name], err = io.ReadAll(r); err != nil {
			t.Fatal(err)
		}
		headers[h.Name] = h
	}
}

// TestImage: the archive is an OCI image layout for both platforms with correct digests. Its files
// and settings are those that routers and searchers need.
func TestImage(t *testing.T) {
	dir := t.TempDir()
	files, _ := unpacked(t, made(t))
	for name, content := range files {
		path := filepath.Join(dir, name)
		if strings.HasSuffix(name, "/") {
			continue
		}
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, content, 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	top, err := layout.ImageIndexFromPath(dir)
	if err == nil {
		err = validate.Index(top)
	}
	if err != nil {
		t.Fatal(err)
	}
	named, err := top.IndexManifest()
	if err != nil || len(named.Manifests) != 1 || named.Manifests[0].Annotations["org.opencontainers.image.ref.name"] != "0.1.0" {
		t.Fatalf("%+v, %v", named, err)
	}
	all, err := top.ImageIndex(named.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	platforms, err := all.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	var architectures []string
	for _, d := range platforms.Manifests {
		image, err := all.Image(d.Digest)
		if err != nil {
			t.Fatal(err)
		}
		architectures = append(architectures, d.Platform.Architecture)
		checkImage(t, image, d.Platform.Architecture)
	}
	if !slices.Equal(architectures, []string{"amd64", "arm64"}) {
		t.Errorf("for %v", architectures)
	}
	if !bytes.Equal(made(t), made(t)) {
		t.Error("the same input makes other bytes")
	}
}

func checkImage(t *testing.T, image v1.Image, architecture string) {
	t.Helper()
	c, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if c.Architecture != architecture || c.OS != "linux" || c.Config.Labels["org.opencontainers.image.version"] != "0.1.0" || c.Created.Unix() != 1767323045 {
		t.Errorf("%s has %+v", architecture, c)
	}
	layers, err := image.Layers()
	if err != nil || len(layers) != 1 {
		t.Fatalf("%s has the layers %v, %v", architecture, layers, err)
	}
	r, err := layers[0].Uncompressed()
	if err != nil {
		t.Fatal(err)
	}
	layer, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	contents, headers := unpacked(t, layer)
	if string(contents["trawl"]) != "for "+architecture || headers["trawl"].Mode != 0o755 || string(contents["serving.cdx.json"]) != "bill of "+architecture {
		t.Errorf("%s has another binary or bill", architecture)
	}
	if h := headers["var/cache/trawl/searcher/"]; h == nil || h.Uid != 65532 || h.Gid != 65532 {
		t.Errorf("%s: the folder of the cache is %+v", architecture, h)
	}
	roots := x509.NewCertPool()
	if pem := contents["etc/ssl/certs/ca-certificates.crt"]; !roots.AppendCertsFromPEM(pem) || bytes.Count(pem, []byte("BEGIN")) < 50 {
		t.Errorf("%s has %d authorities", architecture, bytes.Count(pem, []byte("BEGIN")))
	}
	for name, h := range headers {
		if h.ModTime.Unix() != 1767323045 {
			t.Errorf("%s: %s is of %v", architecture, name, h.ModTime)
		}
	}
}

// TestSameAsDockerfile: the settings equal those of the images that `make images` builds.
func TestSameAsDockerfile(t *testing.T) {
	text, err := os.ReadFile("../images/Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	for _, target := range []Target{Serving, Indexing} {
		t.Run(string(target), func(t *testing.T) { sameSettings(t, target, string(text)) })
	}
}

func sameSettings(t *testing.T, target Target, dockerfile string) {
	t.Helper()
	_, part, _ := strings.Cut(dockerfile, " AS "+string(target)+"\n")
	part, _, _ = strings.Cut(part, "\nFROM ")
	lines := map[string]string{}
	for line := range strings.Lines(part) {
		if key, value, ok := strings.Cut(strings.TrimSpace(line), " "); ok {
			lines[key] = value
		}
	}
	s := (&Image{Target: target}).settings()
	var ports []string
	for port := range s.ExposedPorts {
		ports = append(ports, strings.TrimSuffix(port, "/tcp"))
	}
	slices.Sort(ports)
	entrypoint, err := json.Marshal(s.Entrypoint)
	if err != nil {
		t.Fatal(err)
	}
	for key, got := range map[string]string{
		"USER": s.User, "ENV": strings.Join(s.Env[1:], " "), "EXPOSE": strings.Join(ports, " "), "ENTRYPOINT": string(entrypoint),
		"VOLUME": strings.Join(slices.Collect(maps.Keys(s.Volumes)), " "),
	} {
		if got != lines[key] {
			t.Errorf("%s %s, in the Dockerfile %s", key, got, lines[key])
		}
	}
	for _, label := range []string{"title", "description", "source", "licenses"} {
		if name := "org.opencontainers.image." + label; !strings.Contains(part, fmt.Sprintf("%s=%q", name, s.Labels[name])) {
			t.Errorf("the label %s is not that of the Dockerfile: %s", name, s.Labels[name])
		}
	}
}
