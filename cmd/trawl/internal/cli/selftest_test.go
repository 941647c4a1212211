package cli

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

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

// selfTested runs the self-test against a router and the role at pods, and an
// etcd, in which no token may be left.
func selfTested(t *testing.T, f *forgetful, pods, patience string) (exit int, out, errs string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	srv := grpc.NewServer()
	searchv1.RegisterSearchServiceServer(srv, f)
	ingestv1.RegisterIngestServiceServer(srv, f)
	go func() { _ = srv.Serve(l) }()
	defer srv.Stop()
	s := newStore(t)
	exit, out, errs = run(t, nil, slices.Concat([]string{
		"selftest", "--addr", l.Addr().String(), "--url", "/fixture", "--find", "needle", "--pods", "searcher=" + pods, "--patience", patience,
	}, s.flags[1:3])...)
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
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/readyz" {
			t.Errorf("asked for %s", r.URL)
		}
		w.WriteHeader(code)
		_, _ = w.Write([]byte(text))
	}))
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

// TestSelfTestNamesWhatIsMissing: each thing that a test can fail at is named.
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
		name           string
		router         *forgetful
		pods, patience string
		want           []string
	}{
		{"a role that is not ready", &forgetful{scripted: indexed()}, pod(t, 503, "bucket: no such bucket (for 3s)\nqueue: away (for 2s)\n"), "1s",
			[]string{"searcher at 127.0.0.1:", "is not ready: bucket: no such bucket (for 3s); queue: away"}},
		{"a role without pods", &forgetful{scripted: indexed()}, "nowhere.invalid:7441", "1s", []string{"searcher: there is none"}},
		{"a role that is not reached", &forgetful{scripted: indexed()}, "127.0.0.1:1", "1s", []string{"searcher: ", "connection refused"}},
		{"an index that fails", &forgetful{scripted: failing}, ready(), "1m", []string{"index, which was failed: not indexed: trawl-selftest: no bucket"}},
		{"an index that does not come", &forgetful{scripted: waiting}, ready(), "2s", []string{"index, which was queued"}},
		{"a search without matches", &forgetful{scripted: empty}, ready(), "1m", []string{`search: "needle" was not found`}},
		{"a token that is not accepted", &forgetful{scripted: indexed(), refusals: 1000}, ready(), "5s", []string{"router at 127.0.0.1:", "it is not known"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			exit, out, errs := selfTested(t, tt.router, tt.pods, tt.patience)
			for _, want := range tt.want {
				if exit != 1 || !strings.Contains(errs, want) {
					t.Errorf("exit %d, want 1 and %q in\n%s%s", exit, want, out, errs)
				}
			}
			if tt.router.put != nil && tt.router.deleted != "trawl-selftest" {
				t.Errorf("the repo is left; deleted %q", tt.router.deleted)
			}
		})
	}
}

func TestSelfTestWithoutEtcd(t *testing.T) {
	if testing.Short() {
		t.Skip("etcd is given ten seconds")
	}
	t.Parallel()
	exit, _, errs := run(t, nil, "selftest", "--url", "/x", "--find", "y", "--etcd-endpoints", "http://127.0.0.1:1")
	if exit != 1 || !strings.Contains(errs, "etcd at http://127.0.0.1:1: create token") {
		t.Errorf("exit %d: %s", exit, errs)
	}
}

func TestSelfTestRefusesBadSettings(t *testing.T) {
	exit, _, errs := run(t, nil, "selftest", "--addr", "x", "--pods", "7441", "--patience", "0s")
	for _, want := range []string{"addr", "pods", "url", "find", "patience"} {
		if exit != 2 || !strings.Contains(errs, want) {
			t.Errorf("exit %d, want 2 and %q in %s", exit, want, errs)
		}
	}
}
