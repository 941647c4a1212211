package k8s

import (
	"context"
	"crypto/tls"
	_ "embed"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/trawl-search/trawl/internal/catalog/etcdtest"
	"github.com/trawl-search/trawl/internal/pinned"
	"github.com/trawl-search/trawl/internal/tlsfiles/tlstest"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

//go:embed secured.yaml
var securedYAML string

// authority is the CA of all certificates, with the certificates by the names of their Secrets.
type authority struct {
	*tlstest.CA
	certs map[string]tlstest.Files
}

// secured installs Trawl with TLS, certificates and logins on every connection, as the chart's
// README says, on servers that require them. The parts after this one use it.
func (e *e2e) secured() {
	e.release = release{namespace: "secured", own: map[string]bool{}}
	for _, namespace := range []string{"servers", e.namespace} {
		e.kubectl("create", "namespace", namespace)
	}
	e.kubectl("label", "namespace", e.namespace, "pod-security.kubernetes.io/enforce=restricted")
	e.issue()
	e.startServers("servers", true)
	etcd := e.etcd("")
	root, err := pinned.Repository(e.t.Context())
	e.must(err)
	e.must(etcdtest.Grant(e.t.Context(), etcd, filepath.Join(root, "docs", "security.md"), passwordOf))

	values := filepath.Join(e.dir, "secured.yaml")
	e.must(os.WriteFile(values, []byte(securedYAML), 0o600))
	args := []string{"install", "trawl", filepath.Join(root, "charts", "trawl"), "--values=" + e.values, "--values=" + values, "--wait", "--timeout=5m"}
	if !e.Existing() {
		// Each zone with searchers holds every shard; the zone of the control plane has no searchers.
		args = append(args, "--set=searcher.zones=true", "--set=searcher.nodeSelector.pool=workers")
	}
	e.helm(args...)
	e.router = e.port(e.namespace, "trawl-router", "grpc")
	e.tls = &tls.Config{RootCAs: e.ca.Pool}
	e.createToken("etcd", "trawl-admin")
	e.settled()
	e.helmTest()
	e.indexAndSearch()
	e.byCommandLine()
	e.refusals()
}

// issue makes all certificates, and Secrets with them and with the logins.
func (e *e2e) issue() {
	node := e.Nodes[0].IP
	e.ca = &authority{CA: tlstest.NewCA(e.outer), certs: map[string]tlstest.Files{}}
	ca, err := os.ReadFile(e.ca.File)
	e.must(err)
	e.secrets("servers", map[string]map[string]string{
		"etcd": e.certificate("etcd", "etcd.servers", "127.0.0.1", node), "nats": e.certificate("nats", "nats.servers", node),
		"s3": e.certificate("s3", "s3.servers", node),
	})
	all := e.certificates()
	maps.Copy(all, map[string]map[string]string{
		"ca": {"ca.crt": string(ca)}, "client": e.certificate("client", "client"),
		"nats": {"username": "trawl", "password": passwordOf("trawl")},
		"s3":   {"access-key": "trawl", "secret-key": passwordOf("s3")},
	})
	for _, role := range []string{"router", "searcher", "indexer", "admin"} {
		user := "trawl-" + role
		all["etcd-"+role] = map[string]string{"username": user, "password": passwordOf(user)}
	}
	e.secrets(e.namespace, all)
	e.kubectl("create", "configmap", "authorities", "--namespace="+e.namespace, "--from-file=ca.crt="+e.ca.File)
	e.own["configmap/authorities"] = true
}

// certificate issues the certificate of a Secret, with the keys that cert-manager gives it.
func (e *e2e) certificate(secret string, names ...string) map[string]string {
	files := e.ca.Issue(names...)
	e.ca.certs[secret] = files
	data := map[string]string{}
	for key, file := range map[string]string{"tls.crt": files.Cert, "tls.key": files.Key, "ca.crt": e.ca.File} {
		text, err := os.ReadFile(file)
		e.must(err)
		data[key] = string(text)
	}
	return data
}

// certificates issues new certificates for all listeners of Trawl, by Secret.
func (e *e2e) certificates() map[string]map[string]string {
	in := "." + e.namespace
	all := map[string]map[string]string{"callers": e.certificate("callers", "trawl-router", "trawl-router"+in, e.Nodes[0].IP)}
	for _, role := range []string{"router", "searcher", "indexer"} {
		pods := "trawl-" + role + "-pods"
		all[role] = e.certificate(role, "spiffe://trawl/"+role, pods, pods+in, pods+in+".svc")
	}
	return all
}

// etcd returns a client of the secured etcd, logged in as a user; without a login if user is empty.
func (e *e2e) etcd(user string) *clientv3.Client {
	e.t.Helper()
	c := clientv3.Config{
		Endpoints: []string{"https://" + e.port("servers", "etcd", "client")}, DialTimeout: patience, Logger: zap.NewNop(),
		TLS: e.showing("client"), Username: user,
	}
	if user != "" {
		c.Password = passwordOf(user)
	}
	client, err := clientv3.New(c)
	e.must(err)
	e.t.Cleanup(func() { client.Close() })
	return client
}

// showing returns a TLS configuration with one of the certificates; with none if name is empty.
func (e *e2e) showing(name string) *tls.Config {
	e.t.Helper()
	conf := &tls.Config{RootCAs: e.ca.Pool}
	if name != "" {
		files := e.ca.certs[name]
		pair, err := tls.LoadX509KeyPair(files.Cert, files.Key)
		e.must(err)
		conf.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &pair, nil }
	}
	return conf
}

// trawl runs the command line on this machine, with the binary that the images hold.
func (e *e2e) trawl(args ...string) (string, error) {
	root, err := pinned.Repository(e.t.Context())
	e.must(err)
	ctx, cancel := context.WithTimeout(e.t.Context(), time.Minute)
	defer cancel()
	out, err := exec.CommandContext(ctx, filepath.Join(root, ".cache", "k8s", "trawl-"+current), args...).CombinedOutput()
	return string(out), err
}

// createToken makes the caller's token, as an operator with a login to etcd does.
func (e *e2e) createToken(server, user string) {
	e.t.Helper()
	password := filepath.Join(e.dir, user)
	e.must(os.WriteFile(password, []byte(passwordOf(user)), 0o600))
	files := e.ca.certs["client"]
	out, err := e.trawl("tokens", "create", "--name=e2e", "--allow=**", "--scopes=admin", "--etcd-endpoints=https://"+e.port("servers", server, "client"),
		"--etcd-tls-ca-file="+e.ca.File, "--etcd-tls-cert-file="+files.Cert, "--etcd-tls-key-file="+files.Key,
		"--etcd-username="+user, "--etcd-password-file="+password)
	if err != nil {
		e.t.Fatalf("make a token: %v: %s", err, out)
	}
	lines := strings.Fields(out)
	e.token = lines[0]
	e.must(os.WriteFile(filepath.Join(e.dir, "token"), []byte(e.token), 0o600))
}

// byCommandLine indexes and searches as people do, over TLS.
func (e *e2e) byCommandLine() {
	e.t.Helper()
	caller := []string{"--addr=" + e.router, "--token-file=" + filepath.Join(e.dir, "token")}
	secured := append([]string{"--tls", "--ca-file=" + e.ca.File}, caller...)
	if out, err := e.trawl(append([]string{"index", "--name=" + e.repos[0].name, e.repos[0].url}, secured...)...); err != nil {
		e.t.Errorf("trawl index over TLS: %v: %s", err, out)
	}
	if out, err := e.trawl(append([]string{"search", e.repos[0].token()}, secured...)...); err != nil || !strings.Contains(out, "file0.txt") {
		e.t.Errorf("trawl search over TLS: %v: %s", err, out)
	}
	for what, flags := range map[string][]string{
		"in plain text":                   {"--plaintext-token"},
		"trusting the public CAs":         {"--tls"},
		"trusting another CA":             {"--ca-file=" + tlstest.NewCA(e.t).File},
		"without a word about plain text": nil,
	} {
		if out, err := e.trawl(append(append([]string{"search", heron}, flags...), caller...)...); err == nil {
			e.t.Errorf("trawl search %s: %s", what, out)
		}
	}
}

// refusals checks that routers refuse callers without TLS, that a searcher refuses all callers but
// routers, and that etcd and NATS refuse callers without the required grants and logins.
func (e *e2e) refusals() {
	e.t.Helper()
	ctx, cancel := context.WithTimeout(e.t.Context(), time.Minute)
	defer cancel()
	plain, err := grpc.NewClient(e.router, grpc.WithTransportCredentials(insecure.NewCredentials()))
	e.must(err)
	defer plain.Close()
	if _, err := searchv1.NewSearchServiceClient(plain).Search(ctx, &searchv1.SearchRequest{Query: heron}); status.Code(err) != codes.Unavailable {
		e.t.Errorf("a caller without TLS: %v", err)
	}

	e.kubectl("expose", "pod", "trawl-searcher-0", "--name=door", "--namespace="+e.namespace, "--type=NodePort", "--port=7440")
	door := e.Nodes[0].IP + ":" + e.kubectl("get", "service/door", "--namespace="+e.namespace, "--output=jsonpath={.spec.ports[0].nodePort}")
	for _, who := range []string{"router", "indexer", "searcher", "client", ""} {
		conf := e.showing(who)
		conf.ServerName = "trawl-searcher-pods"
		conn, err := grpc.NewClient(door, grpc.WithTransportCredentials(credentials.NewTLS(conf)))
		e.must(err)
		_, err = healthv1.NewHealthClient(conn).Check(ctx, &healthv1.HealthCheckRequest{}, grpc.WaitForReady(who == "router"))
		conn.Close()
		if (err == nil) != (who == "router") || err != nil && status.Code(err) != codes.Unavailable {
			e.t.Errorf("%q calls a searcher: %v", who, err)
		}
	}
	e.kubectl("delete", "service/door", "--namespace="+e.namespace)

	if _, err := e.etcd("trawl-indexer").Get(ctx, "/trawl/v1/access.key"); err == nil || !strings.Contains(err.Error(), "permission denied") {
		e.t.Errorf("an indexer reads the key of plans: %v", err)
	}
	if conn, err := nats.Connect("tls://"+e.port("servers", "nats", "client"), nats.Secure(e.showing(""))); err == nil {
		conn.Close()
		e.t.Error("NATS accepts a caller without a password")
	} else if !strings.Contains(fmt.Sprint(err), "Authorization") {
		e.t.Errorf("NATS without a password: %v", err)
	}
}
