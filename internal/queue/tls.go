package queue

import (
	"crypto/tls"
	"crypto/x509"

	"github.com/nats-io/nats.go"

	"github.com/trawl-search/trawl/internal/tlsfiles"
)

// TLS is an option of Connect: it enforces TLS whatever the URL says, with the files as
// they are when a connection is made.
func TLS(files *tlsfiles.Client) nats.Option {
	return func(o *nats.Options) error {
		o.Secure, o.TLSConfig = true, &tls.Config{MinVersion: tls.VersionTLS12}
		if files.Certificate().Certificate != nil {
			o.TLSCertCB = func() (tls.Certificate, error) { return files.Certificate(), nil }
		}
		if files.Roots() != nil {
			o.RootCAsCB = func() (*x509.CertPool, error) { return files.Roots(), nil }
		}
		return nil
	}
}
