package kube

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// authority signs the certificates of one cluster.
type authority struct {
	dir  string // where NAME.crt and NAME.key go
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// lifetime is the validity of all certificates: longer than any test's cluster lives.
const lifetime = 48 * time.Hour

// newAuthority makes the authority "ca" in a folder.
func newAuthority(dir string) (*authority, error) {
	a := &authority{dir: dir}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "trawl-test"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(lifetime),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	var err error
	if a.key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		return nil, err
	}
	a.cert = template
	der, err := a.sign("ca", template, a.key)
	if err != nil {
		return nil, err
	}
	a.cert, err = x509.ParseCertificate(der)
	return a, err
}

// issue makes a certificate for a user in a group, valid for these names and addresses.
func (a *authority) issue(file, user, group string, hosts ...string) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: user},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(lifetime),
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
	}
	if group != "" {
		template.Subject.Organization = []string{group}
	}
	for _, host := range hosts {
		if ip := net.ParseIP(host); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, host)
		}
	}
	_, err = a.sign(file, template, key)
	return err
}

// sign writes a certificate and its key, and returns the certificate.
func (a *authority) sign(file string, template *x509.Certificate, key *ecdsa.PrivateKey) ([]byte, error) {
	cert, err := x509.CreateCertificate(rand.Reader, template, a.cert, key.Public(), a.key)
	if err != nil {
		return nil, fmt.Errorf("sign the certificate of %s: %w", file, err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	if err := a.write(file+".crt", "CERTIFICATE", cert); err != nil {
		return nil, err
	}
	return cert, a.write(file+".key", "PRIVATE KEY", secret)
}

func (a *authority) write(name, kind string, der []byte) error {
	return os.WriteFile(filepath.Join(a.dir, name), pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600)
}

// kubeconfig writes NAME.conf, with which the holder of NAME.crt calls a server. The files that
// it names are in the folder at, as its readers see it.
func (a *authority) kubeconfig(name, server, at string) error {
	text := fmt.Sprintf(`apiVersion: v1
kind: Config
clusters: [{name: test, cluster: {server: %q, certificate-authority: %q}}]
users: [{name: test, user: {client-certificate: %q, client-key: %q}}]
contexts: [{name: test, context: {cluster: test, user: test}}]
current-context: test
`, server, filepath.Join(at, "ca.crt"), filepath.Join(at, name+".crt"), filepath.Join(at, name+".key"))
	return os.WriteFile(filepath.Join(a.dir, name+".conf"), []byte(text), 0o600)
}
