// Package tlstest makes certificates for tests.
package tlstest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// CA signs certificates. It is for one goroutine.
type CA struct {
	// File holds the CA's certificate, PEM.
	File string
	// Pool holds the CA's certificate.
	Pool *x509.CertPool

	t    testing.TB
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// Files are a certificate and its key, PEM.
type Files struct{ Cert, Key string }

// NewCA makes a CA.
func NewCA(t testing.TB) *CA {
	t.Helper()
	ca := &CA{t: t, key: newKey(t), File: filepath.Join(t.TempDir(), "ca.pem"), Pool: x509.NewCertPool()}
	template := &x509.Certificate{
		SerialNumber: serial(t), Subject: pkix.Name{CommonName: "test CA"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, ca.key.Public(), ca.key)
	if err != nil {
		t.Fatal(err)
	}
	if ca.cert, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	ca.Pool.AddCert(ca.cert)
	write(t, ca.File, "CERTIFICATE", der)
	return ca
}

// Issue makes a certificate for the names: IP addresses, URIs and DNS names. It is
// valid for servers and for clients.
func (ca *CA) Issue(names ...string) Files { return ca.IssueFor(time.Hour, names...) }

// IssueFor is Issue for a certificate that is valid from an hour ago until life from now. Life may
// be negative.
func (ca *CA) IssueFor(life time.Duration, names ...string) Files {
	ca.t.Helper()
	dir := ca.t.TempDir()
	f := Files{filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")}
	ca.IssueTo(f, life, names...)
	return f
}

// IssueTo is IssueFor, into files that may exist.
func (ca *CA) IssueTo(f Files, life time.Duration, names ...string) {
	ca.t.Helper()
	key := newKey(ca.t)
	template := &x509.Certificate{
		SerialNumber: serial(ca.t), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(life),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	for _, name := range names {
		if ip := net.ParseIP(name); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else if uri, err := url.Parse(name); err == nil && strings.Contains(name, "://") {
			template.URIs = append(template.URIs, uri)
		} else {
			template.DNSNames = append(template.DNSNames, name)
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, ca.cert, key.Public(), ca.key)
	if err != nil {
		ca.t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		ca.t.Fatal(err)
	}
	write(ca.t, f.Cert, "CERTIFICATE", der)
	write(ca.t, f.Key, "PRIVATE KEY", secret)
}

func newKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func serial(t testing.TB) *big.Int {
	t.Helper()
	n, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 100))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func write(t testing.TB, path, kind string, der []byte) {
	t.Helper()
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
}
