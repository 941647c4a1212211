package server_test

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"

	"github.com/trawl-search/trawl/internal/server"
	"github.com/trawl-search/trawl/internal/tlsfiles"
	"github.com/trawl-search/trawl/internal/tlsfiles/tlstest"
	ingestv1 "github.com/trawl-search/trawl/proto/trawl/ingest/v1"
)

const searcherName, routerName = server.SearcherName, server.RouterName

// transport is a role's transport.
func (s *shell) transport(cfg tlsfiles.RoleConfig) credentials.TransportCredentials {
	s.t.Helper()
	creds, err := server.Transport(cfg, s.telemetry().For("client"))
	if err != nil {
		s.t.Fatal(err)
	}
	return creds
}

// call calls the server once over a connection of its own, and fails at the first
// failure to connect.
func (s *shell) call(creds credentials.TransportCredentials) error {
	s.t.Helper()
	var cfg server.ClientConfig
	cfg.SetDefaults()
	conn, err := server.Dial(s.GRPCAddr().String(), cfg, creds, s.telemetry().For("caller"))
	if err != nil {
		s.t.Fatal(err)
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(s.t.Context(), time.Minute)
	defer cancel()
	_, err = ingestv1.NewIngestServiceClient(conn).GetRepo(ctx, &ingestv1.GetRepoRequest{Name: "x"})
	return err
}

// runRole runs a server that admits routers only.
func runRole(t *testing.T, ca *tlstest.CA, own tlstest.Files) *shell {
	t.Helper()
	return run(t, &service{get: fine}, func(cfg *server.Config, _ *server.ClientConfig) {
		cfg.TLS.ForRoles(routerName)
		cfg.TLS.CertFile, cfg.TLS.KeyFile, cfg.TLS.ClientCAFile = own.Cert, own.Key, ca.File
	})
}

// TestRolesKnowEachOther: a call succeeds if each end has a valid certificate of the CA
// that the other end trusts and of the role that it expects. Everything else ends at the
// handshake, on either end, with an error that says why.
func TestRolesKnowEachOther(t *testing.T) {
	ca, stranger := tlstest.NewCA(t), tlstest.NewCA(t)
	router, searcher := ca.Issue(routerName), ca.Issue(searcherName)
	as := func(f tlstest.Files, trusts *tlstest.CA) tlsfiles.RoleConfig {
		return tlsfiles.RoleConfig{CAFile: trusts.File, CertFile: f.Cert, KeyFile: f.Key, ServerNames: []string{searcherName}}
	}
	for name, c := range map[string]struct {
		server tlstest.Files
		client tlsfiles.RoleConfig
		// refused is the server's log of the handshake, refuses the client's error; both are
		// empty if the call succeeds.
		refused, refuses string
	}{
		"right":                       {searcher, as(router, ca), "", ""},
		"several names":               {searcher, as(ca.Issue("router.example.org", routerName), ca), "", ""},
		"client of another CA":        {searcher, as(stranger.Issue(routerName), ca), "unknown authority", ""},
		"client expired":              {searcher, as(ca.IssueFor(-time.Minute, routerName), ca), "has expired", ""},
		"client is another role":      {searcher, as(ca.Issue("spiffe://trawl/indexer"), ca), "none of the names that are accepted", ""},
		"client has a longer name":    {searcher, as(ca.Issue(routerName+"/x"), ca), "none of the names that are accepted", ""},
		"client has no name":          {searcher, as(ca.Issue(), ca), "none of the names that are accepted", ""},
		"client without certificate":  {searcher, tlsfiles.RoleConfig{CAFile: ca.File, ServerNames: []string{searcherName}}, "didn't provide a certificate", ""},
		"client in plain text":        {searcher, tlsfiles.RoleConfig{}, "does not look like a TLS handshake", ""},
		"server of another CA":        {stranger.Issue(searcherName), as(router, ca), "", "signed by unknown authority"},
		"server expired":              {ca.IssueFor(-time.Minute, searcherName), as(router, ca), "", "has expired"},
		"server is another role":      {ca.Issue("spiffe://trawl/indexer"), as(router, ca), "", "none of the names that are accepted"},
		"server is of the host alone": {ca.Issue("127.0.0.1"), as(router, ca), "", "none of the names that are accepted"},
	} {
		t.Run(name, func(t *testing.T) {
			s := runRole(t, ca, c.server)
			err := s.call(s.transport(c.client))
			if through := c.refused == "" && c.refuses == ""; through && err != nil || !through && status.Code(err) != codes.Unavailable {
				t.Fatalf("comes through %v: %v", through, err)
			}
			if c.refuses != "" && !strings.Contains(err.Error(), c.refuses) {
				t.Errorf("the client refuses with %v, want %q", err, c.refuses)
			}
			if c.refused != "" {
				s.await(func() bool { return strings.Contains(s.logs.String(), c.refused) })
			}
		})
	}
}

// TestByHost: without names of roles, the certificate must be the host's.
func TestByHost(t *testing.T) {
	ca := tlstest.NewCA(t)
	router := ca.Issue(routerName)
	for name, want := range map[string]string{"127.0.0.1": "", "127.0.0.2": "certificate is valid for 127.0.0.2"} {
		s := runRole(t, ca, ca.Issue(name))
		err := s.call(s.transport(tlsfiles.RoleConfig{CAFile: ca.File, CertFile: router.Cert, KeyFile: router.Key}))
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("a certificate for %s: %v, want %q", name, err, want)
		}
	}
}

// TestVersions: roles speak TLS 1.3 with each other; callers may speak 1.2, and nothing older.
func TestVersions(t *testing.T) {
	ca := tlstest.NewCA(t)
	own, router := ca.Issue("127.0.0.1"), ca.Issue(routerName)
	shown, err := tls.LoadX509KeyPair(router.Cert, router.Key)
	if err != nil {
		t.Fatal(err)
	}
	role := runRole(t, ca, own)
	callers := run(t, &service{get: fine}, func(cfg *server.Config, _ *server.ClientConfig) {
		cfg.TLS.CertFile, cfg.TLS.KeyFile = own.Cert, own.Key
	})
	for _, c := range []struct {
		s       *shell
		version uint16
		spoken  bool
	}{{role, tls.VersionTLS13, true}, {role, tls.VersionTLS12, false}, {callers, tls.VersionTLS12, true}, {callers, tls.VersionTLS11, false}} {
		for _, addr := range []net.Addr{c.s.GRPCAddr(), c.s.HTTPAddr()} {
			conf := &tls.Config{RootCAs: ca.Pool, Certificates: []tls.Certificate{shown}, MinVersion: c.version, MaxVersion: c.version, NextProtos: []string{"h2"}}
			conn, err := (&tls.Dialer{Config: conf}).DialContext(t.Context(), "tcp", addr.String())
			if (err == nil) != c.spoken {
				t.Errorf("%s at %s: %v", tls.VersionName(c.version), addr, err)
			}
			if err == nil {
				conn.Close()
			}
		}
	}
}

// TestHTTPOverTLS: HTTP/1.1 and HTTP/2 are served. A caller in plain text gets the reason
// of its refusal. If callers need certificates, only the paths for probes are open
// without.
func TestHTTPOverTLS(t *testing.T) {
	ca := tlstest.NewCA(t)
	own := ca.Issue("127.0.0.1")
	for _, demanded := range []bool{false, true} {
		s := run(t, &service{get: fine}, func(cfg *server.Config, _ *server.ClientConfig) {
			cfg.TLS.CertFile, cfg.TLS.KeyFile = own.Cert, own.Key
			if demanded {
				cfg.TLS.ClientCAFile, cfg.TLS.ClientNames = ca.File, []string{"alice"}
			}
		})
		at := s.HTTPAddr().String()
		get := func(path string, protocol int, shown ...tls.Certificate) (int, error) {
			transport := &http.Transport{DisableKeepAlives: true, ForceAttemptHTTP2: protocol == 2, TLSClientConfig: &tls.Config{RootCAs: ca.Pool, Certificates: shown}}
			resp, err := (&http.Client{Transport: transport}).Get("https://" + at + path)
			if err != nil {
				return 0, err
			}
			defer resp.Body.Close()
			if resp.ProtoMajor != protocol {
				t.Errorf("%s: %s, want HTTP/%d", path, resp.Proto, protocol)
			}
			return resp.StatusCode, nil
		}
		load := func(f tlstest.Files) tls.Certificate {
			pair, err := tls.LoadX509KeyPair(f.Cert, f.Key)
			if err != nil {
				t.Fatal(err)
			}
			return pair
		}
		// There is nothing at /x: an admitted caller gets 404.
		outside := http.StatusNotFound
		if demanded {
			outside = http.StatusForbidden
		}
		for _, protocol := range []int{1, 2} {
			for path, want := range map[string]int{"/healthz": http.StatusOK, "/metrics": http.StatusOK, "/x": outside, "//healthz/../x": outside} {
				if got, err := get(path, protocol); err != nil || got != want && got != http.StatusTemporaryRedirect && got != http.StatusMovedPermanently {
					t.Errorf("demanded %v: GET %s without a certificate: %d, %v; want %d", demanded, path, got, err, want)
				}
			}
			if got, err := get("/x", protocol, load(ca.Issue("alice"))); err != nil || got != http.StatusNotFound {
				t.Errorf("demanded %v: with the certificate: %d, %v", demanded, got, err)
			}
			if _, err := get("/healthz", protocol, load(ca.Issue("bob"))); (err != nil) != demanded {
				t.Errorf("demanded %v: with that of somebody else: %v", demanded, err)
			}
		}
		resp, err := s.http.Get("http://" + at + "/healthz")
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != http.StatusBadRequest {
			t.Errorf("plain text to the TLS port: %s", resp.Status)
		}
	}
}

// TestCertificatesAreReloaded: a certificate and a CA that are replaced under load take
// effect, no call fails, and invalid files change nothing.
func TestCertificatesAreReloaded(t *testing.T) {
	before, after := tlstest.NewCA(t), tlstest.NewCA(t)
	own, mine := before.Issue(searcherName), before.Issue(routerName)
	trusted := t.TempDir() + "/ca.pem" // trusted by both ends
	both := func(files ...string) {
		var all []byte
		for _, f := range files {
			text, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, text...)
		}
		if err := os.WriteFile(trusted, all, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	both(before.File)
	s := run(t, &service{get: fine}, func(cfg *server.Config, _ *server.ClientConfig) {
		cfg.TLS.ForRoles(routerName)
		cfg.TLS.CertFile, cfg.TLS.KeyFile, cfg.TLS.ClientCAFile = own.Cert, own.Key, trusted
	})
	creds := s.transport(tlsfiles.RoleConfig{CAFile: trusted, CertFile: mine.Cert, KeyFile: mine.Key, ServerNames: []string{searcherName}})

	ctx, stop := context.WithCancel(t.Context())
	var calls atomic.Int64
	var load sync.WaitGroup
	defer load.Wait()
	defer stop()
	for range 2 {
		load.Go(func() {
			for ctx.Err() == nil {
				if err := s.call(creds); err != nil && ctx.Err() == nil {
					t.Errorf("while the files change: %v", err)
					return
				}
				calls.Add(1)
			}
		})
	}
	// A step is in effect when a client that trusts or shows nothing else gets through.
	through := func(ca *tlstest.CA, client tlstest.Files) func() bool {
		only := s.transport(tlsfiles.RoleConfig{CAFile: ca.File, CertFile: client.Cert, KeyFile: client.Key, ServerNames: []string{searcherName}})
		return func() bool { return s.call(only) == nil }
	}
	both(before.File, after.File)
	next := after.Issue(routerName)
	s.await(through(before, next))

	if err := os.WriteFile(own.Key, []byte("not a key"), 0o600); err != nil {
		t.Fatal(err)
	}
	s.await(func() bool {
		_ = s.call(creds)
		return strings.Contains(s.logs.String(), "what was read before stays in use")
	})
	after.IssueTo(own, time.Hour, searcherName)
	after.IssueTo(mine, time.Hour, routerName)
	s.await(through(after, next))
	seen := calls.Load()
	s.await(func() bool { return calls.Load() >= seen+10 || t.Failed() })

	stop()
	load.Wait()
	both(after.File)
	old := through(before, before.Issue(routerName))
	s.await(func() bool { return !old() })
	if err := s.call(creds); err != nil {
		t.Errorf("with the new files alone: %v", err)
	}
	if strings.Contains(s.logs.String(), "not a key") || strings.Contains(s.logs.String(), "PRIVATE") {
		t.Error("the log holds a key")
	}
}

// TestFilesThatCannotBeUsed: a server does not start with invalid files, and names
// them.
func TestFilesThatCannotBeUsed(t *testing.T) {
	ca := tlstest.NewCA(t)
	own, other := ca.Issue("127.0.0.1"), ca.Issue("127.0.0.1")
	empty := t.TempDir() + "/empty.pem"
	if err := os.WriteFile(empty, []byte("\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := &shell{t: t, spans: tracetest.NewInMemoryExporter(), logs: &logBuffer{}}
	for name, files := range map[string]tlsfiles.ServerConfig{
		"missing.pem": {CertFile: own.Cert + "missing.pem", KeyFile: own.Key},
		other.Key:     {CertFile: own.Cert, KeyFile: other.Key},
		empty:         {CertFile: own.Cert, KeyFile: own.Key, ClientCAFile: empty},
	} {
		var cfg server.Config
		cfg.SetDefaults()
		cfg.TLS = files
		srv, err := server.New(cfg, s.telemetry().For("test"))
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("with %s: %v", name, err)
		}
		if srv != nil {
			t.Error("there is a server with", name, errors.Join(srv.Close()))
		}
	}
}

// TestPlainTextIsWarnedOf: one warning, if other machines reach a server without TLS.
func TestPlainTextIsWarnedOf(t *testing.T) {
	own := tlstest.NewCA(t).Issue("127.0.0.1")
	for _, c := range []struct {
		listen    string
		encrypted bool
		want      int
	}{{"127.0.0.1:0", false, 0}, {"0.0.0.0:0", true, 0}, {"0.0.0.0:0", false, 1}} {
		s := run(t, &service{get: fine}, func(cfg *server.Config, _ *server.ClientConfig) {
			cfg.GRPC, cfg.HTTP = c.listen, c.listen
			if c.encrypted {
				cfg.TLS.CertFile, cfg.TLS.KeyFile = own.Cert, own.Key
			}
		})
		if got := strings.Count(s.logs.String(), "connections are not encrypted"); got != c.want {
			t.Errorf("%+v: warned %d times, want %d", c, got, c.want)
		}
	}
}
