package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

func made(t *testing.T) []byte {
	t.Helper()
	image := Image{Version: "0.1.0", Revision: "0123abc", Created: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Platforms: []Platform{
		{Architecture: "amd64", Binary: []byte("for amd64"), Bill: []byte("bill of amd64")},
		{Architecture: "arm64", Binary: []byte("for arm64"), Bill: []byte("bill of arm64")},
	}}
	var b bytes.Buffer
	if err := image.Write(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// unpacked are the entries of a tar archive.
func unpacked(t *testing.T, text []byte) (contents map[string][]byte, headers map[string]*tar.Header) {
	t.Helper()
	contents, headers = map[string][]byte{}, map[string]*tar.Header{}
	for r := tar.NewReader(bytes.NewReader(text)); ; {
		h, err := r.Next()
		if err == io.EOF {
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

// blob is what a descriptor names, which must have its digest and its size.
func blob(t *testing.T, files map[string][]byte, d descriptor, into any) []byte {
	t.Helper()
	text := files["blobs/"+strings.Replace(d.Digest, ":", "/", 1)]
	if len(text) != d.Size || d.Digest != fmt.Sprintf("sha256:%x", sha256.Sum256(text)) {
		t.Fatalf("%v names %d bytes", d, len(text))
	}
	if into != nil {
		if err := json.Unmarshal(text, into); err != nil {
			t.Fatal(err)
		}
	}
	return text
}

// TestImage: the archive is an OCI image layout of both platforms, whose files and settings are those that
// routers and searchers need.
func TestImage(t *testing.T) {
	files, _ := unpacked(t, made(t))
	if got := string(files["oci-layout"]); got != `{"imageLayoutVersion":"1.0.0"}` {
		t.Errorf("the layout is %s", got)
	}
	var top, all index
	if err := json.Unmarshal(files["index.json"], &top); err != nil || len(top.Manifests) != 1 {
		t.Fatalf("%v, %v", top, err)
	}
	blob(t, files, top.Manifests[0], &all)
	var architectures []string
	for _, d := range all.Manifests {
		var m manifest
		var c imageConfig
		blob(t, files, d, &m)
		blob(t, files, m.Config, &c)
		architecture := d.Platform.Architecture
		architectures = append(architectures, architecture)
		if c.Architecture != architecture || c.OS != "linux" || c.Config.Labels["org.opencontainers.image.version"] != "0.1.0" || c.Created != "2026-01-02T03:04:05Z" {
			t.Errorf("%s has %+v", architecture, c)
		}
		z, err := gzip.NewReader(bytes.NewReader(blob(t, files, m.Layers[0], nil)))
		if err != nil {
			t.Fatal(err)
		}
		layer, err := io.ReadAll(z)
		if err != nil {
			t.Fatal(err)
		}
		if want := fmt.Sprintf("sha256:%x", sha256.Sum256(layer)); len(m.Layers) != 1 || !slices.Equal(c.RootFS.DiffIDs, []string{want}) {
			t.Errorf("%s has the layers %v, want %s", architecture, c.RootFS.DiffIDs, want)
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
	if !slices.Equal(architectures, []string{"amd64", "arm64"}) {
		t.Errorf("for %v", architectures)
	}
	if !bytes.Equal(made(t), made(t)) {
		t.Error("the same input makes other bytes")
	}
}

// TestSameAsDockerfile: the settings are those of the image that `make images` builds.
func TestSameAsDockerfile(t *testing.T) {
	text, err := os.ReadFile("../images/Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	_, serving, _ := strings.Cut(string(text), " AS serving\n")
	serving, _, _ = strings.Cut(serving, "\nFROM ")
	lines := map[string]string{}
	for line := range strings.Lines(serving) {
		if key, value, ok := strings.Cut(strings.TrimSpace(line), " "); ok {
			lines[key] = value
		}
	}
	s := (&Image{}).settings()
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
	} {
		if got != lines[key] {
			t.Errorf("%s %s, in the Dockerfile %s", key, got, lines[key])
		}
	}
	for _, label := range []string{"title", "description", "source", "licenses"} {
		if name := "org.opencontainers.image." + label; !strings.Contains(serving, fmt.Sprintf("%s=%q", name, s.Labels[name])) {
			t.Errorf("the label %s is not that of the Dockerfile: %s", name, s.Labels[name])
		}
	}
}
