package gitsource

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// TestAuthoritiesAreAdded: a host with a certificate of a system authority is still
// trusted when a file names other authorities.
func TestAuthoritiesAreAdded(t *testing.T) {
	r, url, config := httpRepo(t, asIs)
	r.Files("main", "a", "text\n")
	other := otherAuthority(t)
	f := newFetcher(t, func(c *FetchConfig) {
		config(c)
		t.Setenv("SSL_CERT_FILE", c.CAFile)
		c.CAFile = other
	})
	if _, err := f.Branches(t.Context(), url, nil); err != nil {
		t.Errorf("a host of the system's authority: %v", err)
	}
	t.Setenv("SSL_CERT_FILE", other)
	_, err := f.Branches(t.Context(), url, nil)
	wantFailure(t, err, Unreachable, "ertificate")
}

// TestMissingAuthorities: a fetch that ends because the file of authorities cannot be read leaves nothing running.
func TestMissingAuthorities(t *testing.T) {
	before := goleak.IgnoreCurrent()
	f := newFetcher(t, func(c *FetchConfig) { c.CAFile = filepath.Join(t.TempDir(), "missing.pem") })
	_, err := f.Branches(t.Context(), "https://example.com/x/y", nil)
	wantFailure(t, err, Unknown, "read certificate authorities")
	goleak.VerifyNone(t, before)
}

// otherAuthority writes the certificate of an authority that signed nothing.
func otherAuthority(t *testing.T) (path string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	path = filepath.Join(t.TempDir(), "other.pem")
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
