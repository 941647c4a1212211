package queue_test

import (
	"crypto/tls"
	"crypto/x509"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"

	"github.com/trawl-search/trawl/internal/queue"
	"github.com/trawl-search/trawl/internal/testrun"
	"github.com/trawl-search/trawl/internal/tlsfiles"
	"github.com/trawl-search/trawl/internal/tlsfiles/tlstest"
)

// secured starts a NATS server that requires TLS, certificates of the CA, and the user of
// the nkey.
func secured(t *testing.T, ca *tlstest.CA, nkey string) string {
	t.Helper()
	own := ca.Issue("127.0.0.1")
	pair, err := tls.LoadX509KeyPair(own.Cert, own.Key)
	if err != nil {
		t.Fatal(err)
	}
	s, err := server.NewServer(&server.Options{
		Host: "127.0.0.1", Port: server.RANDOM_PORT, JetStream: true, StoreDir: t.TempDir(), NoSigs: true, NoLog: true,
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{pair}, ClientCAs: ca.Pool, ClientAuth: tls.RequireAndVerifyClientCert},
		TLS:       true, TLSVerify: true, TLSTimeout: 30, AuthTimeout: 30,
		Nkeys: []*server.NkeyUser{{Nkey: nkey}},
	})
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(func() {
		s.Shutdown()
		s.WaitForShutdown()
	})
	return strings.Replace(s.ClientURL(), "tls://", "nats://", 1)
}

// TestSecuredServer: a connection needs the right CA, a certificate that the server
// accepts and the nkey. If one of them is missing, the error names it, and nothing is
// published.
func TestSecuredServer(t *testing.T) {
	ca, other := tlstest.NewCA(t), tlstest.NewCA(t)
	key, err := nkeys.CreateUser()
	if err != nil {
		t.Fatal(err)
	}
	public, err := key.PublicKey()
	if err != nil {
		t.Fatal(err)
	}
	seed, err := key.Seed()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "seed.nk")
	if err := os.WriteFile(file, seed, 0o600); err != nil {
		t.Fatal(err)
	}
	url := secured(t, ca, public)
	mine, strange := ca.Issue("router"), other.Issue("router")
	for name, c := range map[string]struct {
		files tlsfiles.ClientConfig
		nkey  bool
		want  string
	}{
		"right":          {tlsfiles.ClientConfig{CAFile: ca.File, CertFile: mine.Cert, KeyFile: mine.Key}, true, ""},
		"another CA":     {tlsfiles.ClientConfig{CAFile: other.File, CertFile: mine.Cert, KeyFile: mine.Key}, true, x509.UnknownAuthorityError{}.Error()},
		"no certificate": {tlsfiles.ClientConfig{CAFile: ca.File}, true, "certificate required"},
		"strange":        {tlsfiles.ClientConfig{CAFile: ca.File, CertFile: strange.Cert, KeyFile: strange.Key}, true, "certificate"},
		"no nkey":        {tlsfiles.ClientConfig{CAFile: ca.File, CertFile: mine.Cert, KeyFile: mine.Key}, false, "authorization"},
	} {
		t.Run(name, func(t *testing.T) {
			files, err := tlsfiles.NewClient(c.files, slog.New(slog.DiscardHandler))
			if err != nil {
				t.Fatal(err)
			}
			options := []nats.Option{queue.TLS(files)}
			if c.nkey {
				option, err := nats.NkeyOptionFromSeed(file)
				if err != nil {
					t.Fatal(err)
				}
				options = append(options, option)
			}
			nc, err := queue.Connect(url, options...)
			if err != nil {
				if c.want == "" || !strings.Contains(err.Error(), c.want) {
					t.Errorf("connect: %v, want %q", err, c.want)
				}
				return
			}
			defer nc.Close()
			q := newQueue(t, nc, brisk())
			testrun.Until(t, name, func() bool {
				err := q.Publish(t.Context(), queue.Job{Repo: "r", Epoch: 1})
				if err != nil && (strings.Contains(err.Error(), string(seed)) || c.want == "" && nc.IsClosed()) {
					t.Fatal(err)
				}
				if c.want == "" {
					return err == nil
				}
				last := nc.LastError()
				return err != nil && last != nil && strings.Contains(strings.ToLower(last.Error()), strings.ToLower(c.want))
			})
		})
	}
}
