package cli

import (
	"context"
	"crypto/tls"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/trawl-search/trawl/internal/tlsfiles/tlstest"
	ingestv1 "github.com/trawl-search/trawl/proto/trawl/ingest/v1"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

// forgetful is a scripted router that does not know a new token at first.
type forgetful struct {
	*scripted
	refusals int
	tokens   []string
}

func (f *forgetful) PutRepo(ctx context.Context, req *ingestv1.PutRepoRequest) (*ingestv1.PutRepoResponse, error) {
	f.tokens = append(f.tokens, metadata.ValueFromIncomingContext(ctx, "authorization")...)
	if f.refusals--; f.refusals >= 0 {
		return nil, status.Error(codes.Unauthenticated, "it is not known")
	}
	return f.scripted.PutRepo(ctx, req)
}

// patiently repeats a self-test that waits in vain: with twice the patience, for a slow machine, until
// it says what is wanted. A test that waits for nothing has a minute at once.
func patiently(t *testing.T, waits bool, test func(patience string) (exit int, said string), want ...string) {
	t.Helper()
	patience := time.Minute
	if waits {
		patience = time.Second
	}
	for ; ; patience *= 2 {
		exit, said := test(patience.String())
		lacks := func(want string) bool { return !strings.Contains(said, want) }
		switch {
		case exit == 1 && !slices.ContainsFunc(want, lacks):
			return
		case patience >= time.Minute:
			t.Errorf("exit %d, want 1 and %q in\n%s", exit, want, said)
			return
		}
	}
}

// selfTested runs the self-test against a router and the role at pods, and an
// etcd, in which no token may be left.
func selfTested(t *testing.T, f *forgetful, pods, patience string) (exit int, out, errs string) {
	t.Helper()
	return selfTestedOver(t, f, nil, "--pods", "searcher="+pods, "--patience", patience)
}

// selfTestedOver is selfTested with any flags, against a router that shows cert unless it is nil.
func selfTestedOver(t *testing.T, f *forgetful, cert *tls.Certificate, flags ...string) (exit int, out, errs string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var options []grpc.ServerOption
	if cert != nil {
		options = append(options, grpc.Creds(credentials.NewServerTLSFromCert(cert)))
	}
	srv := grpc.NewServer(options...)
	searchv1.RegisterSearchServiceServer(srv, f)
	ingestv1.RegisterIngestServiceServer(srv, f)
	go func() { _ = srv.Serve(l) }()
	defer srv.Stop()
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	s := newStore(t)
	exit, out, errs = run(t, nil, slices.Concat([]string{
		"selftest", "--addr", "localhost:" + port, "--url", "/fixture", "--find", "needle",
	}, flags, s.flags[1:3])...)
	if _, list, _ := run(t, nil, slices.Concat([]string{"tokens", "list", "--json"}, s.flags[1:3])...); list != "" {
		t.Errorf("the token is left: %s", list)
	}
	return exit, out, errs
}

func indexed() *scripted {
	return &scripted{answer: oneFile(), statuses: []*ingestv1.RepoStatus{{
		Name: "trawl-selftest", State: ingestv1.State_STATE_PUBLISHED, Epoch: 2, PublishedEpoch: 2, RevisionToken: []byte("r"),
	}}}
}

// pod answers /readyz.
func pod(t *testing.T, code int, text string) string {
	t.Helper()
	return podShowing(t, nil, code, text)
}

// podShowing is pod with a certificate, if there is one.
func podShowing(t *testing.T, cert *tls.Certificate, code int, text string) string {
	t.Helper()
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/readyz" {
			t.Errorf("asked for %s", r.URL)
		}
		w.WriteHeader(code)
		_, _ = w.Write([]byte(text))
	}))
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	if cert == nil {
		s.Start()
	} else {
		s.TLS = &tls.Config{Certificates: []tls.Certificate{*cert}}
		s.StartTLS()
	}
	t.Cleanup(s.Close)
	return s.Listener.Addr().String()
}

func TestSelfTest(t *testing.T) {
	f := &forgetful{scripted: indexed(), refusals: 1}
	exit, out, errs := selfTested(t, f, pod(t, 200, "ready\n"), "1m")
	if exit != 0 || !strings.Contains(out, "searcher: 1 ready\n") || !strings.Contains(out, `found "needle" in a.go`) {
		t.Errorf("exit %d: %s%s", exit, out, errs)
	}
	if len(f.tokens) != 2 || !strings.HasPrefix(f.tokens[0], "Bearer trawl_") || strings.Contains(out+errs, f.tokens[0]) {
		t.Errorf("showed %q", f.tokens)
	}
	options := f.searched.GetOptions()
	if f.put.GetName() != "trawl-selftest" || f.put.GetUrl() != "/fixture" || f.searched.GetQuery() != `"needle"` ||
		!options.GetRequireComplete() || string(options.GetConsistency().GetAtLeast()) != "r" {
		t.Errorf("asked for %v and %v", f.put, f.searched)
	}
	if f.deleted != "trawl-selftest" {
		t.Errorf("deleted %q", f.deleted)
	}
}

// TestSelfTestAsksRoutersAsCallersDo: the pods of routers show the certificate that callers see. It is valid
// for the name that callers use, and another CA than the roles' may have signed it.
func TestSelfTestAsksRoutersAsCallersDo(t *testing.T) {
	t.Parallel()
	callers, roles := tlstest.NewCA(t), tlstest.NewCA(t)
	issued := func(ca *tlstest.CA, name string) *tls.Certificate {
		files := ca.Issue(name)
		pair, err := tls.LoadX509KeyPair(files.Cert, files.Key)
		if err != nil {
			t.Fatal(err)
		}
		return &pair
	}
	router, role := issued(callers, "localhost"), issued(roles, "127.0.0.1")
	searcher := podShowing(t, role, 200, "ready\n")
	for _, tt := range []struct {
		name    string
		routers string
		want    string
	}{
		{"not ready", podShowing(t, router, 503, "etcd: away (for 3s)\n"), "is not ready: etcd: away"},
		{"showing the certificate of another host", podShowing(t, issued(callers, "127.0.0.1"), 200, "ready\n"), "router: "},
		{"showing a certificate of the roles' CA", podShowing(t, issued(roles, "localhost"), 200, "ready\n"), "router: "},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			patiently(t, true, func(patience string) (int, string) {
				exit, out, errs := selfTestedOver(t, &forgetful{scripted: indexed()}, router, "--ca-file", callers.File, "--router-pods", tt.routers,
					"--pods", "searcher="+searcher, "--pods-ca-file", roles.File, "--patience", patience)
				return exit, out + errs
			}, tt.want, "searcher: 1 ready\n")
		})
	}
	exit, out, errs := selfTestedOver(t, &forgetful{scripted: indexed()}, router, "--ca-file", callers.File, "--router-pods", podShowing(t, router, 200, "ready\n"),
		"--pods", "searcher="+searcher, "--pods-ca-file", roles.File, "--patience", "1m")
	if exit != 0 || !strings.Contains(out, "router: 1 ready\n") || !strings.Contains(out, "searcher: 1 ready\n") {
		t.Errorf("routers that are ready: exit %d: %s%s", exit, out, errs)
	}
	exit, out, errs = selfTestedOver(t, &forgetful{scripted: indexed()}, nil, "--router-pods", pod(t, 200, "ready\n"), "--patience", "1m")
	if exit != 0 || !strings.Contains(out, "router: 1 ready\n") {
		t.Errorf("routers in plain text: exit %d: %s%s", exit, out, errs)
	}
}

// TestSelfTestNamesWhatIsMissing: the error names each possible cause of failure.
func TestSelfTestNamesWhatIsMissing(t *testing.T) {
	t.Parallel()
	failing := indexed()
	failing.statuses[0].State, failing.statuses[0].PublishedEpoch, failing.statuses[0].Reason = ingestv1.State_STATE_FAILED, 0, "no bucket"
	waiting := indexed()
	waiting.statuses[0].State, waiting.statuses[0].PublishedEpoch = ingestv1.State_STATE_QUEUED, 0
	empty := indexed()
	empty.answer = &searchv1.SearchResponse{}
	ready := func() string { return pod(t, 200, "ready\n") }
	for _, tt := range []struct {
		name   string
		router *forgetful
		pods   string
		waits  bool
		want   []string
	}{
		{"a role that is not ready", &forgetful{scripted: indexed()}, pod(t, 503, "bucket: no such bucket (for 3s)\nqueue: away (for 2s)\n"), true,
			[]string{"searcher at 127.0.0.1:", "is not ready: bucket: no such bucket (for 3s); queue: away"}},
		{"a role without pods", &forgetful{scripted: indexed()}, "nowhere.invalid:7441", true, []string{"searcher: found none"}},
		{"a role that is not reached", &forgetful{scripted: indexed()}, "127.0.0.1:1", true, []string{"searcher: ", "connection refused"}},
		{"an index that fails", &forgetful{scripted: failing}, ready(), false, []string{"index, which was failed: not indexed: trawl-selftest: no bucket"}},
		{"an index that does not come", &forgetful{scripted: waiting}, ready(), true, []string{"index, which was queued"}},
		{"a search without matches", &forgetful{scripted: empty}, ready(), false, []string{`search: "needle" was not found`}},
		{"a token that is not accepted", &forgetful{scripted: indexed(), refusals: 1000}, ready(), true, []string{"router at localhost:", "it is not known"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			patiently(t, tt.waits, func(patience string) (int, string) {
				exit, _, errs := selfTested(t, tt.router, tt.pods, patience)
				return exit, errs
			}, tt.want...)
			if tt.router.put != nil && tt.router.deleted != "trawl-selftest" {
				t.Errorf("the repo is left; deleted %q", tt.router.deleted)
			}
		})
	}
}

func TestSelfTestRefusesBadSettings(t *testing.T) {
	exit, _, errs := run(t, nil, "selftest", "--addr", "x", "--pods", "7441", "--router-pods", "7431", "--patience", "0s")
	for _, want := range []string{"addr", "pods", "router-pods", "url", "find", "patience"} {
		if exit != 2 || !strings.Contains(errs, want) {
			t.Errorf("exit %d, want 2 and %q in %s", exit, want, errs)
		}
	}
}
