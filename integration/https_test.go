package integration

import (
	"bytes"
	"encoding/pem"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/trawl-search/trawl/internal/bucket/buckettest"
)

// TestBucketBehindAPrivateAuthority: once SSL_CERT_DIR names a private authority, the program
// speaks https to an S3 server with a certificate of that authority. It still trusts the
// system's authorities.
func TestBucketBehindAPrivateAuthority(t *testing.T) {
	cfg := buckettest.StartS3(t).Config("code")
	_, query, _ := strings.Cut(cfg.URL, "?")
	params, err := url.ParseQuery(query)
	if err != nil {
		t.Fatal(err)
	}
	plain, err := url.Parse(params.Get("endpoint"))
	if err != nil || plain.Host == "" {
		t.Fatalf("no endpoint in %s: %v", cfg.URL, err)
	}
	// The proxy keeps the name that the client asked for, which is part of the signature.
	front := httptest.NewTLSServer(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.Out.URL.Scheme, r.Out.URL.Host = plain.Scheme, plain.Host
	}})
	defer front.Close()
	dir, none := t.TempDir(), filepath.Join(t.TempDir(), "none")
	authority := filepath.Join(dir, "ca.crt")
	if err := os.WriteFile(authority, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: front.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	c := newCluster(t, 1)
	for _, tt := range []struct {
		what, file, dir string
		works           bool
	}{
		{"neither knows it", none, none, false},
		{"the private authorities know it", none, dir, true},
		{"the system's know it, and there are private ones", authority, t.TempDir(), true},
	} {
		cmd := exec.CommandContext(t.Context(), trawlBinary, "gc", "--audit", "--etcd-endpoints", c.etcd, "--bucket-url", "s3://code?region=us-east-1&endpoint="+front.URL)
		cmd.Env = append(processEnv(), "SSL_CERT_FILE="+tt.file, "SSL_CERT_DIR="+tt.dir,
			"TRAWL_GC_BUCKET_CREDENTIALS_FILE="+cfg.CredentialsFile)
		var said bytes.Buffer
		cmd.Stdout, cmd.Stderr = &said, &said
		if err := cmd.Run(); (err == nil) != tt.works {
			t.Errorf("%s: %v\n%s", tt.what, err, said.String())
		} else if !tt.works && !strings.Contains(said.String(), "certificate") {
			t.Errorf("%s: the error does not name the certificate:\n%s", tt.what, said.String())
		}
	}
}
