package codehost

import (
	"crypto/x509"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
)

// TestAuthoritiesAreAdded: the authorities of the file are added to the system's.
func TestAuthoritiesAreAdded(t *testing.T) {
	server := httptest.NewTLSServer(http.NotFoundHandler())
	defer server.Close()
	file := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := NewClient(loopback, file, Secrets{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	want, err := x509.SystemCertPool()
	if err != nil {
		t.Fatal(err)
	}
	if want.Equal(x509.NewCertPool()) {
		t.Skip("this system has no certificate authorities")
	}
	want.AddCert(server.Certificate())
	if got := c.http.Transport.(*http.Transport).TLSClientConfig.RootCAs; !got.Equal(want) {
		t.Error("the client does not trust the system's authorities and that of the file")
	}
}
