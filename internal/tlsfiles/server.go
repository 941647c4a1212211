package tlsfiles

import (
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"

	"github.com/trawl-search/trawl/internal/config"
)

// ServerConfig configures how a role's listeners encrypt, and which callers they
// admit.
type ServerConfig struct {
	CertFile     string   `config:"cert-file" doc:"file with the certificate that callers are shown and those that signed it, PEM, read again when it changes; empty: plain text"`
	KeyFile      string   `config:"key-file" doc:"file with the key of the certificate, PEM"`
	ClientCAFile string   `config:"client-ca-file" doc:"file with CA certificates, PEM, one of which must have signed the certificate of every caller; empty: callers need no certificate"`
	ClientNames  []string `config:"client-names" doc:"with client-ca-file, the names in certificates (URI or DNS name) of the callers that are admitted; empty: every name"`

	// onlyRoles is set if other roles are the only callers: they speak TLS 1.3.
	onlyRoles bool
}

// SetDefaults implements config.Settings: plain text, and at least TLS 1.2 if there
// is TLS.
func (c *ServerConfig) SetDefaults() { *c = ServerConfig{} }

// ForRoles makes the defaults those of a listener that only other roles call: TLS 1.3,
// and only callers with the names.
func (c *ServerConfig) ForRoles(names ...string) { c.onlyRoles, c.ClientNames = true, names }

// Enabled reports whether there is TLS.
func (c *ServerConfig) Enabled() bool { return c.CertFile != "" }

// Validate implements config.Settings. It does not read the files.
func (c *ServerConfig) Validate() error {
	var check config.Check
	checkPair(&check, c.CertFile, c.KeyFile)
	check.That(c.ClientCAFile == "" || c.CertFile != "", "client-ca-file", c.ClientCAFile, "cert-file and key-file beside it")
	return check.Err()
}

func checkPair(check *config.Check, cert, key string) {
	check.That(cert == "" || key != "", "key-file", key, "the file with the key of cert-file")
	check.That(key == "" || cert != "", "cert-file", cert, "the file with the certificate of key-file")
}

// Server makes the TLS of listeners. It is safe for concurrent use.
type Server struct {
	files *reloader
	cfg   ServerConfig
}

// NewServer reads the files of an enabled configuration.
func NewServer(cfg ServerConfig, log *slog.Logger) (*Server, error) {
	files, err := newReloader(paths{cfg.CertFile, cfg.KeyFile, cfg.ClientCAFile}, log)
	if err != nil {
		return nil, fmt.Errorf("TLS of the server: %w", err)
	}
	return &Server{files: files, cfg: cfg}, nil
}

// Config is for a listener of the protocols, in the order of preference. If callers need
// a certificate, the handshake refuses callers without one; with askOnly it accepts
// them, and CheckCaller refuses them later. It refuses an invalid certificate in either
// case.
func (s *Server) Config(askOnly bool, protocols ...string) *tls.Config {
	whole := s.config(askOnly, protocols)
	whole.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) { return s.config(askOnly, protocols), nil }
	return whole
}

// config returns a configuration from the files as they are now.
func (s *Server) config(askOnly bool, protocols []string) *tls.Config {
	now := s.files.now()
	c := &tls.Config{Certificates: []tls.Certificate{*now.cert}, NextProtos: protocols, MinVersion: tls.VersionTLS12}
	if s.cfg.onlyRoles {
		c.MinVersion = tls.VersionTLS13
	}
	if now.pool == nil {
		return c
	}
	c.ClientCAs, c.ClientAuth = now.pool, tls.RequireAndVerifyClientCert
	if askOnly {
		c.ClientAuth = tls.VerifyClientCertIfGiven
	}
	// A resumed session would not be verified against CAs that have changed since.
	c.SessionTicketsDisabled = true
	c.VerifyConnection = func(state tls.ConnectionState) error {
		if len(state.VerifiedChains) == 0 {
			return nil // the caller showed none, and none is required here
		}
		return s.CheckCaller(&state)
	}
	return c
}

// errNoCallerCertificate means that a caller has shown no certificate.
var errNoCallerCertificate = errors.New("a client certificate is needed")

// CheckCaller returns nil if callers need no certificate, or if the caller of this
// connection has shown a valid one. A nil state means a connection without TLS.
func (s *Server) CheckCaller(state *tls.ConnectionState) error {
	if s.cfg.ClientCAFile == "" {
		return nil
	}
	if state == nil || len(state.VerifiedChains) == 0 {
		return errNoCallerCertificate
	}
	if len(s.cfg.ClientNames) == 0 {
		return nil
	}
	return checkNames(state.PeerCertificates[0], s.cfg.ClientNames)
}
