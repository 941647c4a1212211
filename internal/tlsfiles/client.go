package tlsfiles

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"

	"github.com/trawl-search/trawl/internal/config"
)

// ClientConfig configures which servers a client trusts, and the certificate that it
// shows them.
type ClientConfig struct {
	CAFile   string `config:"ca-file" doc:"file with the CA certificates, PEM, one of which must have signed that of the server; read again when it changes; empty: the CAs of the system"`
	CertFile string `config:"cert-file" doc:"file with the certificate that the server is shown and those that signed it, PEM; empty: none"`
	KeyFile  string `config:"key-file" doc:"file with the key of the certificate, PEM"`
}

// Set reports whether anything is set.
func (c *ClientConfig) Set() bool { return *c != ClientConfig{} }

// SetDefaults implements config.Settings: the CAs of the system, and no certificate.
func (c *ClientConfig) SetDefaults() { *c = ClientConfig{} }

// Validate implements config.Settings. It does not read the files.
func (c *ClientConfig) Validate() error {
	var check config.Check
	checkPair(&check, c.CertFile, c.KeyFile)
	return check.Err()
}

// RoleConfig configures TLS for the calls from one role to another.
type RoleConfig struct {
	CAFile      string   `config:"ca-file" doc:"file with the CA certificates, PEM, one of which must have signed that of the server; read again when it changes; empty: plain text"`
	CertFile    string   `config:"cert-file" doc:"file with the certificate by which this role is known to the server, PEM; empty: none"`
	KeyFile     string   `config:"key-file" doc:"file with the key of the certificate, PEM"`
	ServerNames []string `config:"server-names" doc:"names, one of which the certificate of the server must have (URI or DNS name); empty: that of the host that is called"`
}

// Enabled reports whether there is TLS.
func (c *RoleConfig) Enabled() bool { return c.CAFile != "" }

// Validate implements config.Settings. It does not read the files.
func (c *RoleConfig) Validate() error {
	var check config.Check
	checkPair(&check, c.CertFile, c.KeyFile)
	check.That(c.CertFile == "" || c.CAFile != "", "ca-file", c.CAFile, "the file with the CA certificates, beside cert-file")
	return check.Err()
}

// Client makes the TLS of a client's connections. It is safe for concurrent use.
type Client struct {
	files *reloader
	names []string
	least uint16
}

// NewClient reads the files. Servers must have a certificate of the host that is called.
func NewClient(cfg ClientConfig, log *slog.Logger) (*Client, error) {
	return newClient(paths{cfg.CertFile, cfg.KeyFile, cfg.CAFile}, nil, tls.VersionTLS12, log)
}

// NewRoleClient reads the files of an enabled configuration.
func NewRoleClient(cfg RoleConfig, log *slog.Logger) (*Client, error) {
	return newClient(paths{cfg.CertFile, cfg.KeyFile, cfg.CAFile}, cfg.ServerNames, tls.VersionTLS13, log)
}

func newClient(p paths, names []string, least uint16, log *slog.Logger) (*Client, error) {
	files, err := newReloader(p, log)
	if err != nil {
		return nil, fmt.Errorf("TLS of the client: %w", err)
	}
	return &Client{files: files, names: names, least: least}, nil
}

// Config returns the configuration of one connection, from the files as they are now.
func (c *Client) Config() *tls.Config {
	now := c.files.now()
	conf := &tls.Config{RootCAs: now.pool, MinVersion: c.least}
	if now.cert != nil {
		conf.Certificates = []tls.Certificate{*now.cert}
	}
	if len(c.names) == 0 {
		return conf
	}
	conf.InsecureSkipVerify = true // VerifyConnection verifies, by name instead of by host
	conf.VerifyConnection = func(state tls.ConnectionState) error {
		between := x509.NewCertPool()
		for _, cert := range state.PeerCertificates[1:] {
			between.AddCert(cert)
		}
		leaf := state.PeerCertificates[0]
		// As crypto/tls verifies, but without a host name.
		if _, err := leaf.Verify(x509.VerifyOptions{Roots: now.pool, Intermediates: between}); err != nil {
			return &tls.CertificateVerificationError{UnverifiedCertificates: state.PeerCertificates, Err: err}
		}
		return checkNames(leaf, c.names)
	}
	return conf
}

// Transport makes connections for HTTP, each with the files as they are then. It ignores the environment's proxy.
func (c *Client) Transport() *http.Transport {
	return &http.Transport{DialTLSContext: func(ctx context.Context, network, address string) (net.Conn, error) {
		return (&tls.Dialer{Config: c.Config()}).DialContext(ctx, network, address)
	}}
}

// Certificate is the current certificate, or an empty one.
func (c *Client) Certificate() tls.Certificate {
	if now := c.files.now(); now.cert != nil {
		return *now.cert
	}
	return tls.Certificate{}
}

// Roots are the current CAs; nil means those of the system.
func (c *Client) Roots() *x509.CertPool { return c.files.now().pool }

// ErrName means that a certificate is valid but carries none of the wanted names.
var ErrName = errors.New("the certificate has none of the names that are accepted")

// maxNamesShown bounds the names in an error.
const maxNamesShown = 4

// checkNames returns nil if the certificate has one of the names as a URI or a DNS name.
func checkNames(cert *x509.Certificate, accepted []string) error {
	has := slices.Clone(cert.DNSNames)
	for _, uri := range cert.URIs {
		has = append(has, uri.String())
	}
	if slices.ContainsFunc(has, func(name string) bool { return slices.Contains(accepted, name) }) {
		return nil
	}
	shown := has[:min(len(has), maxNamesShown)]
	return fmt.Errorf("%w: it has %q, accepted is %s", ErrName, shown, strings.Join(accepted, ", "))
}
