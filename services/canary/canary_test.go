package canary

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/trawl-search/trawl/internal/telemetry"
	"github.com/trawl-search/trawl/internal/telemetry/telemetrytest"
	"github.com/trawl-search/trawl/internal/testrun"
	"github.com/trawl-search/trawl/internal/tlsfiles"
	ingestv1 "github.com/trawl-search/trawl/proto/trawl/ingest/v1"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const secret = "Bearer trawl_aaaaaaaaaaaaa_bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"

// fake is a router that answers as it is told. It finds every word of a repo that is there.
type fake struct {
	searchv1.UnimplementedSearchServiceServer
	ingestv1.UnimplementedIngestServiceServer

	mu sync.Mutex
	// there: the repo is indexed. stuck: nothing is indexed any more. kept: nothing is deleted any more. down: no call is
	// answered. login: pages want a token.
	there, stuck, kept, down, incomplete, login bool
	names, urls, tokens                         map[string]bool
	deleted                                     int
}

func (f *fake) look(token string) (found, complete, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.tokens[token] = true
	return f.there, !f.incomplete, !f.down
}

func tokenOf(ctx context.Context) string {
	return strings.Join(metadata.ValueFromIncomingContext(ctx, "authorization"), ",")
}

func (f *fake) Search(ctx context.Context, _ *searchv1.SearchRequest) (*searchv1.SearchResponse, error) {
	found, complete, ok := f.look(tokenOf(ctx))
	if !ok {
		return nil, status.Error(codes.Unavailable, "down")
	}
	return &searchv1.SearchResponse{Coverage: &searchv1.Coverage{Complete: complete}, Files: []*searchv1.FileMatch{{Path: []byte(fileOf(found))}}}, nil
}

// fileOf is the file that has the word: that of the canary if it is found, or somebody's.
func fileOf(found bool) string {
	if found {
		return needlePath
	}
	return "notes.txt"
}

func (f *fake) PutRepo(ctx context.Context, req *ingestv1.PutRepoRequest) (*ingestv1.PutRepoResponse, error) {
	if _, _, ok := f.look(tokenOf(ctx)); !ok {
		return nil, status.Error(codes.Unavailable, "down")
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.urls[req.GetUrl()] = true
	f.there = f.there || !f.stuck
	return &ingestv1.PutRepoResponse{Name: strings.TrimSuffix(strings.TrimPrefix(req.GetUrl(), "http://"), ".git")}, nil
}

func (f *fake) DeleteRepo(_ context.Context, req *ingestv1.DeleteRepoRequest) (*ingestv1.DeleteRepoResponse, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.names[req.GetName()] = true
	f.there = f.there && f.kept
	f.deleted++
	return &ingestv1.DeleteRepoResponse{}, nil
}

// ServeHTTP answers as the doors over HTTP do.
func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	found, complete, ok := f.look(r.Header.Get("Authorization"))
	if !ok {
		http.Error(w, "down", http.StatusServiceUnavailable)
		return
	}
	files := []any{map[string]any{"path": fileOf(found), "FileName": fileOf(found)}}
	switch r.URL.Path {
	case "/login":
		return
	case "/":
		if f.asksForLogin() {
			http.Redirect(w, r, "/login", http.StatusSeeOther)
			return
		}
	}
	switch r.URL.Path {
	case "/api/v1/search":
		_ = json.NewEncoder(w).Encode(map[string]any{"files": files, "coverage": map[string]any{"complete": complete}})
	case "/api/search":
		_ = json.NewEncoder(w).Encode(map[string]any{"Result": map[string]any{"Files": files, "Trawl": map[string]any{"Complete": complete}}})
	default:
		fmt.Fprintf(w, "<input value=%q>", r.URL.Query().Get("q"))
		fmt.Fprintf(w, `<a href="/r/x/-/%s">`, fileOf(found))
		if complete {
			fmt.Fprint(w, `<span class="complete">`)
		}
	}
}

func (f *fake) asksForLogin() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.login
}

func (f *fake) set(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
}

// watched is a canary that watches a fake.
type watched struct {
	*fake

	t    *testing.T
	tel  *telemetry.Telemetry
	stop func()
}

func watch(t *testing.T) *watched {
	t.Helper()
	f := &fake{names: map[string]bool{}, urls: map[string]bool{}, tokens: map[string]bool{}}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	testrun.Must(t, err)
	srv := grpc.NewServer()
	searchv1.RegisterSearchServiceServer(srv, f)
	ingestv1.RegisterIngestServiceServer(srv, f)
	go func() { _ = srv.Serve(ln) }()
	t.Cleanup(srv.Stop)
	pages := httptest.NewServer(f)
	t.Cleanup(pages.Close)
	token := filepath.Join(t.TempDir(), "token")
	testrun.Must(t, os.WriteFile(token, []byte(strings.TrimPrefix(secret, "Bearer ")+"\n"), 0o600))

	var cfg Config
	cfg.SetDefaults()
	cfg.GRPC, cfg.HTTP, cfg.Every = "127.0.0.1:0", "127.0.0.1:0", time.Second
	cfg.Router = Router{GRPC: ln.Addr().String(), HTTP: pages.Listener.Addr().String(), TokenFile: token}
	tel, _ := telemetrytest.New(t)
	w := &watched{fake: f, t: t, tel: tel}
	c, err := New(cfg, tel)
	testrun.Must(t, err)
	c.cfg.Every = 10 * time.Millisecond
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- c.Run(ctx) }()
	w.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(w.stop)
	return w
}

// each returns the value of a metric by door: that of a counter or gauge, and of a histogram how often it observed.
func (w *watched) each(name, outcome string) map[string]float64 {
	w.t.Helper()
	families, err := w.tel.Gatherer().Gather()
	testrun.Must(w.t, err)
	values := map[string]float64{}
	for _, family := range families {
		if family.GetName() != name {
			continue
		}
		for _, m := range family.GetMetric() {
			labels := map[string]string{}
			for _, l := range m.GetLabel() {
				labels[l.GetName()] = l.GetValue()
			}
			if labels["outcome"] == outcome {
				values[labels["door"]] = valueOf(m)
			}
		}
	}
	return values
}

func valueOf(m *dto.Metric) float64 {
	switch {
	case m.GetCounter() != nil:
		return m.GetCounter().GetValue()
	case m.GetGauge() != nil:
		return m.GetGauge().GetValue()
	}
	return float64(m.GetHistogram().GetSampleCount())
}

// all reports whether every door has at least that much.
func (w *watched) all(name, outcome string, least float64) bool {
	all := w.each(name, outcome)
	for _, value := range all {
		if value < least {
			return false
		}
	}
	return len(all) == len(doors)
}

// more waits until every door has counted more than now.
func (w *watched) more(what, name, outcome string) {
	w.t.Helper()
	before := 0.0
	for _, value := range w.each(name, outcome) {
		before = max(before, value)
	}
	testrun.Until(w.t, what, func() bool { return w.all(name, outcome, before+1) })
}

const (
	found   = "trawl_canary_freshness_seconds"
	answers = "trawl_canary_answers_total"
	behind  = "trawl_canary_behind_seconds"
)

// TestEveryDoorFindsEachPush: where all is well each push is found by every door and every answer is complete. The repo
// is deleted now and then and at the end, under its own name, and calls have the token.
func TestEveryDoorFindsEachPush(t *testing.T) {
	w := watch(t)
	testrun.Until(t, "several deletions", func() bool { return w.all(found, "", 3*deleteEvery) })
	for _, outcome := range []string{"incomplete", "failed", "wrong"} {
		for door, n := range w.each(answers, outcome) {
			if n != 0 {
				t.Errorf("%v answers of %s are %s", n, door, outcome)
			}
		}
	}
	w.set(func() {
		if len(w.urls) != 1 || len(w.names) != 1 || len(w.tokens) != 1 || !w.tokens[secret] || w.deleted < 2 {
			t.Errorf("put %v, deleted %v %d times, shown %v", w.urls, w.names, w.deleted, w.tokens)
		}
		for name := range w.names {
			if !w.urls["http://"+name+".git"] || !strings.HasSuffix(name, "/trawl/canary") {
				t.Errorf("put %v, deleted %s", w.urls, name)
			}
		}
		w.there = true
	})
	w.stop()
	if there, _, _ := w.look(secret); there {
		t.Error("the repo is left behind")
	}
}

// TestWhatCallersWouldNotice: each trouble is counted for every door, and ends when it is over.
func TestWhatCallersWouldNotice(t *testing.T) {
	w := watch(t)
	w.more("healthy", found, "")
	w.set(func() { w.incomplete = true })
	w.more("incomplete answers", answers, "incomplete")
	w.set(func() { w.incomplete, w.kept = false, true })
	w.more("a deleted repo that is shown", answers, "wrong")
	w.set(func() { w.kept, w.stuck = false, true })
	testrun.Until(t, "a deletion, since which no door finds a push", func() bool {
		found, _, _ := w.look(secret)
		return !found
	})
	testrun.Until(t, "pushes that nothing finds", func() bool { return w.all(behind, "", 1e-9) })
	w.set(func() { w.down = true })
	w.more("failed answers", answers, "failed")
	w.set(func() { w.stuck, w.down, w.there = false, false, true })
	w.more("healthy again", found, "")
}

// TestLoginIsNoAnswer: a page that asks for a token is a failure.
func TestLoginIsNoAnswer(t *testing.T) {
	w := watch(t)
	w.more("healthy", found, "")
	w.set(func() { w.login = true })
	testrun.Until(t, "failed pages", func() bool { return w.each(answers, "failed")["page"] > 0 })
	if n := w.each(answers, "incomplete")["page"]; n > 0 {
		t.Errorf("%v pages for logging in count as incomplete answers", n)
	}
}

// TestSettings: a token is not sent in plain text to another machine unless the operator says so.
func TestSettings(t *testing.T) {
	for _, c := range []struct {
		router Router
		ok     bool
	}{
		{Router{GRPC: "127.0.0.1:1", HTTP: "localhost:2"}, true},
		{Router{GRPC: "router:1", HTTP: "router:2"}, true},
		{Router{GRPC: "127.0.0.1:1", HTTP: "localhost:2", TokenFile: "t"}, true},
		{Router{GRPC: "router:1", HTTP: "localhost:2", TokenFile: "t"}, false},
		{Router{GRPC: "127.0.0.1:1", HTTP: "router:2", TokenFile: "t"}, false},
		{Router{GRPC: "router:1", HTTP: "router:2", TokenFile: "t", Exposed: true}, true},
		{Router{GRPC: "router:1", HTTP: "router:2", TokenFile: "t", TLS: true}, true},
		{Router{GRPC: "router", HTTP: "router:2"}, false},
		{Router{GRPC: "router:1", HTTP: "router:2", TokenFile: "t", ClientConfig: tlsfiles.ClientConfig{CertFile: "c", KeyFile: "k"}}, true},
		{Router{GRPC: "router:1", HTTP: "router:2", ClientConfig: tlsfiles.ClientConfig{CertFile: "c"}}, false},
	} {
		var cfg Config
		cfg.SetDefaults()
		cfg.Router = c.router
		if err := cfg.Validate(); (err == nil) != c.ok {
			t.Errorf("%+v: %v", c.router, err)
		}
	}
}

// TestChangesAreLogged: an operator sees each change of the answers once, however often the canary asks.
func TestChangesAreLogged(t *testing.T) {
	var out bytes.Buffer
	c := &Canary{log: slog.New(slog.NewTextHandler(&out, nil))}
	for _, outcome := range []string{"complete", "failed", "failed", "incomplete", "complete", "complete"} {
		for _, door := range []string{"grpc", "json"} {
			c.say(t.Context(), door, outcome, nil)
		}
	}
	if lines := strings.Count(out.String(), "\n"); lines != 2*4 {
		t.Errorf("%d lines of 4 changes at 2 doors:\n%s", lines, out.String())
	}
}
