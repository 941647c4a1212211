package integration

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"go.etcd.io/etcd/client/pkg/v3/transport"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/trawl-search/trawl/internal/catalog/etcdtest"
	"github.com/trawl-search/trawl/internal/testrun"
	"github.com/trawl-search/trawl/internal/tlsfiles/tlstest"
)

// fortress is Trawl with TLS and logins everywhere: etcd and NATS authenticate their clients,
// and roles authenticate each other by certificates.
type fortress struct {
	*cluster
	ca      *tlstest.CA // issues all certificates
	clients tlstest.Files
	etcd    string
	nats    string
	root    *clientv3.Client
	started []*process
}

// passwordOf is the password of a user of etcd or NATS.
func passwordOf(user string) string { return "hunter2-" + user }

func newFortress(t *testing.T) *fortress {
	t.Helper()
	f := &fortress{cluster: &cluster{owner: t, dir: t.TempDir()}, ca: tlstest.NewCA(t)}
	f.clients = f.ca.Issue("client")
	f.startEtcd(t)
	f.startNATS(t)
	return f
}

// startEtcd starts an etcd that requires certificates and logins, with the documented users
// and grants.
func (f *fortress) startEtcd(t *testing.T) {
	t.Helper()
	own := f.ca.Issue("127.0.0.1")
	c := embed.NewConfig()
	c.Dir, c.LogLevel = filepath.Join(f.dir, "etcd"), "fatal"
	peers := url.URL{Scheme: "http", Host: "127.0.0.1:0"}
	clients := url.URL{Scheme: "https", Host: "127.0.0.1:0"}
	c.ListenPeerUrls, c.AdvertisePeerUrls = []url.URL{peers}, []url.URL{peers}
	c.ListenClientUrls, c.AdvertiseClientUrls = []url.URL{clients}, []url.URL{clients}
	c.ClientTLSInfo = transport.TLSInfo{CertFile: own.Cert, KeyFile: own.Key, TrustedCAFile: f.ca.File, ClientCertAuth: true}
	c.InitialCluster = c.InitialClusterFromName(c.Name)
	c.EnableGRPCGateway = false
	e, err := embed.StartEtcd(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	<-e.Server.ReadyNotify()
	f.etcd = "https://" + e.Clients[0].Addr().String()
	f.root = f.loggedIn(t, "") // etcd does not require a login yet
	if err := etcdtest.Grant(t.Context(), f.root, "../docs/security.md", passwordOf); err != nil {
		t.Fatal(err)
	}
	f.root = f.loggedIn(t, "root")
}

// loggedIn returns etcd's own client, logged in as a user; without a login if user is empty.
func (f *fortress) loggedIn(t *testing.T, user string) *clientv3.Client {
	t.Helper()
	pair, err := tls.LoadX509KeyPair(f.clients.Cert, f.clients.Key)
	if err != nil {
		t.Fatal(err)
	}
	c := clientv3.Config{
		Endpoints: []string{f.etcd}, DialTimeout: patience, Logger: zap.NewNop(), TLS: &tls.Config{RootCAs: f.ca.Pool, Certificates: []tls.Certificate{pair}},
	}
	if user != "" {
		c.Username, c.Password = user, passwordOf(user)
	}
	client, err := clientv3.New(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	return client
}

func (f *fortress) startNATS(t *testing.T) {
	t.Helper()
	own := f.ca.Issue("127.0.0.1")
	pair, err := tls.LoadX509KeyPair(own.Cert, own.Key)
	if err != nil {
		t.Fatal(err)
	}
	s, err := server.NewServer(&server.Options{
		Host: "127.0.0.1", Port: server.RANDOM_PORT, JetStream: true, StoreDir: filepath.Join(f.dir, "nats"), NoSigs: true, NoLog: true,
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{pair}, ClientCAs: f.ca.Pool, ClientAuth: tls.RequireAndVerifyClientCert},
		TLS:       true, TLSVerify: true, TLSTimeout: 60, AuthTimeout: 60, Username: "trawl", Password: passwordOf("nats"),
	})
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	f.nats = s.ClientURL()
}

// secret writes a secret to a file and returns its path.
func (f *fortress) secret(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(path, []byte(text+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// asUser returns the flags with which a process logs in to etcd.
func (f *fortress) asUser(t *testing.T, user string) []string {
	t.Helper()
	return []string{
		"--etcd-endpoints", f.etcd, "--etcd-tls-ca-file", f.ca.File, "--etcd-tls-cert-file", f.clients.Cert, "--etcd-tls-key-file", f.clients.Key,
		"--etcd-username", user, "--etcd-password-file", f.secret(t, passwordOf(user)),
	}
}

// run starts a role with its certificate.
func (f *fortress) run(t *testing.T, role string, own tlstest.Files, args ...string) *process {
	t.Helper()
	all := slices.Concat([]string{
		role, "--grpc", "127.0.0.1:0", "--http", "127.0.0.1:0", "--drain-delay", "0s", "--tls-cert-file", own.Cert, "--tls-key-file", own.Key,
	}, f.asUser(t, "trawl-"+role), args)
	if role != "searcher" {
		all = append(all, "--nats-url", f.nats, "--nats-username", "trawl", "--nats-password-file", f.secret(t, passwordOf("nats")),
			"--nats-tls-ca-file", f.ca.File, "--nats-tls-cert-file", f.clients.Cert, "--nats-tls-key-file", f.clients.Key)
	}
	p := f.start(role, all...)
	f.started = append(f.started, p)
	return p
}

// ready waits until a role reports over TLS that it is ready.
func (f *fortress) ready(t *testing.T, p *process) {
	t.Helper()
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{RootCAs: f.ca.Pool, ServerName: "127.0.0.1"}}}
	at := p.addresses(t)
	testrun.Eventually(t, p.name+" is ready", func(ctx context.Context) error {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+at.HTTP+"/readyz", http.NoBody)
		if err != nil {
			return err
		}
		resp, err := client.Do(req)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		text, _ := io.ReadAll(resp.Body)
		if resp.StatusCode != http.StatusOK {
			return fmt.Errorf("%s: %s", resp.Status, text)
		}
		return nil
	})
}

// TestEverythingSecured: with TLS, certificates and logins on every connection, and only the
// documented grants in etcd, roles do all their work: repositories are found, indexed, pushed
// to, packed together, searched, and deleted until their bytes are gone. Searchers and indexers
// refuse callers that are not routers. Etcd refuses whatever a role was not granted. No secret
// is logged.
func TestEverythingSecured(t *testing.T) {
	f := newFortress(t)
	local := "127.0.0.1"
	mtls := []string{"--tls-client-ca-file", f.ca.File}
	routers := f.ca.Issue("spiffe://trawl/router")
	router := f.run(t, "router", f.ca.Issue(local), append(f.policy(), "--access-mode", "tokens", "--replication", "1",
		"--searcher-tls-ca-file", f.ca.File, "--searcher-tls-cert-file", routers.Cert, "--searcher-tls-key-file", routers.Key, "--source-credentials", f.credentials())...)
	router.addresses(t)
	// The router makes the key that seals plans; searchers may not write it.
	testrun.Eventually(t, "the router has made the key", func(ctx context.Context) error {
		resp, err := f.root.Get(ctx, "/trawl/v1/access.key")
		if err == nil && resp.Count == 0 {
			err = errors.New("it is not there")
		}
		return err
	})
	searcher := f.run(t, "searcher", f.ca.Issue(local, "spiffe://trawl/searcher"), append(mtls, "--access-mode", "tokens", "--replication", "1", "--id", "s0",
		"--bucket-url", f.bucket(), "--cache-dir", f.searcherCache(0), "--grace", "1s")...)
	indexer := f.run(t, "indexer", f.ca.Issue(local, "spiffe://trawl/indexer"), slices.Concat(mtls, f.policy(), eager, []string{
		"--bucket-url", f.bucket(), "--cache-dir", filepath.Join(f.dir, "indexer"), "--reconcile-every", "1s", "--push-pause", "1s",
		"--source-credentials", f.credentials(),
	})...)
	for _, p := range f.started {
		f.ready(t, p)
	}
	token := f.work(t, router)

	f.refusesIntruders(t, searcher, indexer)
	f.deniesWhatIsNotGranted(t)
	for _, p := range f.started {
		p.stop(t)
		for _, never := range []string{"hunter2", "PRIVATE KEY", "permission denied", token} {
			if n := p.count(never); n > 0 {
				t.Errorf("%s logged %q %d times:\n%s", p.name, never, n, p.tail(40))
			}
		}
	}
}

// work has the roles do all that they do, and returns the caller's token.
func (f *fortress) work(t *testing.T, router *process) (token string) {
	t.Helper()
	token, told, exit := command(t, append([]string{"tokens", "create", "--name", "t", "--allow", "**", "--scopes", "admin"}, f.asUser(t, "trawl-admin")...)...)
	if exit != 0 {
		t.Fatalf("tokens create: %s", told)
	}
	token = strings.TrimSpace(token)
	caller := []string{"--addr", router.addresses(t).GRPC, "--ca-file", f.ca.File, "--token-file", f.secret(t, token)}
	trawl := func(want string, args ...string) {
		t.Helper()
		testrun.Eventually(t, fmt.Sprint(args), func(context.Context) error {
			out, errs, exit := command(t, slices.Concat(args, caller)...)
			if exit == 2 && args[0] != "search" {
				t.Fatal(errs) // trying again cannot help
			}
			if exit != 0 || !strings.Contains(out, want) {
				return fmt.Errorf("exit %d: %s%s", exit, out, errs)
			}
			return nil
		})
	}
	alpha, beta, _ := threeRepositories(t, f.dir)
	repos := []*repository{alpha, beta}
	for i := range 8 { // enough to be packed together
		r := newRepository(t, f.dir, fmt.Sprintf("small%d", i))
		r.write("a.txt", "small\n")
		r.commit("first")
		repos = append(repos, r)
	}
	host := startHost(t, repos...)
	sources, secret := filepath.Join(f.dir, "sources.yaml"), filepath.Join(f.credentials(), "acme")
	if err := os.MkdirAll(f.credentials(), 0o700); err != nil {
		t.Fatal(err)
	}
	apply := func(text, want string) {
		t.Helper()
		if err := os.WriteFile(sources, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		trawl(want, "sources", "apply", "-f", sources)
	}
	if err := os.WriteFile(secret, []byte(hostSecret), 0o600); err != nil {
		t.Fatal(err)
	}
	apply(host.source("1s"), "1 source: ")
	own := newRepository(t, f.dir, "own")
	own.write("a.go", "package needle\n")
	own.commit("first")
	trawl("", "index", "--name", "needle", own.path)
	trawl("a.go", "search", "package needle")
	alpha.write("pushed.txt", "kingfisher of the needle\n")
	alpha.commit("second")
	trawl("pushed.txt", "search", "kingfisher of the needle")
	testrun.Eventually(t, "repos are packed together", func(ctx context.Context) error {
		resp, err := f.root.Get(ctx, "/trawl/v1/packs/", clientv3.WithPrefix(), clientv3.WithCountOnly())
		if err == nil && resp.Count == 0 {
			err = errors.New("there is no pack")
		}
		return err
	})
	trawl("", "jobs", "list")
	trawl("active", "searchers", "list")
	trawl("takes shards again", "searchers", "drain", "s0", "--undo")
	trawl("are asked for", "repos", "reindex", "--all", "--rate", "0")
	trawl("acme", "sources")
	if out, errs, exit := command(t, append([]string{"gc", "--hold", "1s", "--bucket-url", f.bucket()}, f.asUser(t, "trawl-admin")...)...); exit != 0 {
		t.Errorf("gc: exit %d: %s%s", exit, out, errs)
	}
	apply("sources: []\n", "0 sources: ")
	trawl("", "delete", "--wait", "needle")
	for _, gone := range []string{"package needle", "kingfisher of the needle"} {
		testrun.Eventually(t, gone+" is gone", func(context.Context) error {
			if out, errs, exit := command(t, append([]string{"search", gone}, caller...)...); exit != 1 || out != "" {
				return fmt.Errorf("exit %d: %s%s", exit, out, errs)
			}
			return nil
		})
	}
	return token
}

// refusesIntruders calls roles as somebody who is not a router.
func (f *fortress) refusesIntruders(t *testing.T, roles ...*process) {
	t.Helper()
	stranger := tlstest.NewCA(t)
	for name, own := range map[string]*tlstest.Files{
		"router":   new(f.ca.Issue("spiffe://trawl/router")),
		"indexer":  new(f.ca.Issue("spiffe://trawl/indexer")),
		"searcher": new(f.ca.Issue("spiffe://trawl/searcher")),
		"stranger": new(stranger.Issue("spiffe://trawl/router")),
		"expired":  new(f.ca.IssueFor(-time.Minute, "spiffe://trawl/router")),
		"nobody":   nil,
	} {
		conf := &tls.Config{RootCAs: f.ca.Pool}
		if own != nil {
			pair, err := tls.LoadX509KeyPair(own.Cert, own.Key)
			if err != nil {
				t.Fatal(err)
			}
			// Like an intruder, present the certificate whatever CAs the server asks for.
			conf.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &pair, nil }
		}
		for _, p := range roles {
			conn, err := grpc.NewClient(p.addresses(t).GRPC, grpc.WithTransportCredentials(credentials.NewTLS(conf)))
			if err != nil {
				t.Fatal(err)
			}
			_, err = healthv1.NewHealthClient(conn).Check(t.Context(), &healthv1.HealthCheckRequest{})
			conn.Close()
			if (err == nil) != (name == "router") || err != nil && status.Code(err) != codes.Unavailable {
				t.Errorf("%s calls a %s: %v", name, p.name, err)
			}
		}
	}
}

// deniesWhatIsNotGranted logs in to etcd as each role and tries what an attacker who controls
// that role would.
func (f *fortress) deniesWhatIsNotGranted(t *testing.T) {
	t.Helper()
	_, errs, exit := command(t, append([]string{"tokens", "create", "--name", "intruder", "--allow", "**", "--scopes", "admin"}, f.asUser(t, "trawl-indexer")...)...)
	if exit != 1 || !strings.Contains(errs, "permission denied") {
		t.Errorf("an indexer makes a token: exit %d: %s", exit, errs)
	}
	secret := []string{"access/tokens/x", "access.key", "access.clock"}
	for user, denied := range map[string]struct{ reads, writes []string }{
		"trawl-indexer": {secret, append(secret, "searchers/x", "limits/x", "elsewhere")},
		"trawl-searcher": {
			append(secret[:1:1], "desired/x", "sources/x", "status/x"),
			append(secret, "roots/x", "roots.clock", "desired/x", "leases/x", "packs/x", "collection", "elections/x"),
		},
		"trawl-router": {
			[]string{"condemned/x", "elections/x"},
			[]string{"access/tokens/x", "access.clock", "condemned/x", "holds/x", "packs/x", "collection", "elections/x", "claims/x", "compactions/x", "disks/x", "searchers/x", "sourcereports/x"},
		},
	} {
		client := f.loggedIn(t, user)
		for _, key := range denied.reads {
			if _, err := client.Get(t.Context(), "/trawl/v1/"+key); err == nil || !strings.Contains(err.Error(), "permission denied") {
				t.Errorf("%s reads %s: %v", user, key, err)
			}
		}
		for _, key := range denied.writes {
			if _, err := client.Put(t.Context(), "/trawl/v1/"+key, "x"); err == nil || !strings.Contains(err.Error(), "permission denied") {
				t.Errorf("%s writes %s: %v", user, key, err)
			}
			if _, err := client.Delete(t.Context(), "/trawl/v1/"+key); err == nil || !strings.Contains(err.Error(), "permission denied") {
				t.Errorf("%s deletes %s: %v", user, key, err)
			}
		}
		if _, err := client.Put(t.Context(), "/other", "x"); err == nil {
			t.Errorf("%s writes outside Trawl's prefix", user)
		}
	}
}
