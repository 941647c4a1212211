package ingest

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"

	"github.com/trawl-search/trawl/internal/catalog"
	"github.com/trawl-search/trawl/internal/catalog/etcdtest"
	"github.com/trawl-search/trawl/internal/codehost"
	"github.com/trawl-search/trawl/internal/fair"
	"github.com/trawl-search/trawl/internal/queue"
	"github.com/trawl-search/trawl/internal/testrun"
	catalogv1 "github.com/trawl-search/trawl/proto/trawl/catalog/v1"
	ingestv1 "github.com/trawl-search/trawl/proto/trawl/ingest/v1"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	secret   = "s3cr3t-of-the-tests"
	repoName = "git.example.com/acme/a"
	apart    = 10 * time.Second
)

// world is a handler with a source of every kind, each named after its kind.
type world struct {
	*Webhooks

	t    *testing.T
	etcd func(context.Context) error
	log  bytes.Buffer

	registry *prometheus.Registry

	mu   sync.Mutex
	jobs []queue.Job

	// repo is the name of the repo that is pushed to.
	repo string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, registry: prometheus.NewRegistry(), repo: repoName}
	store := catalog.New(etcdtest.New().Client(func(ctx context.Context) error {
		if w.etcd != nil {
			return w.etcd(ctx)
		}
		return ctx.Err()
	}), "")
	metrics := NewWebhookMetrics(w.registry)
	env := func(name string) (string, bool) { return secret, name == "TRAWL_SECRET_HOOK" }
	log := slog.New(slog.NewTextHandler(&w.log, nil))
	sources := catalog.NewSourceView(t.Context(), store, log)
	t.Cleanup(sources.Close)
	w.Webhooks = NewWebhooks(store, sources, w, codehost.Secrets{Env: env}, apart, metrics, log)
	var specs []*ingestv1.Source
	for _, kind := range []string{"github", "gitlab", "gitea", "bitbucket", "bitbucket-server", "gerrit"} {
		specs = append(specs, &ingestv1.Source{Name: kind, Kind: kind, Url: "https://git.example.com", Owner: "acme", WebhookSecret: &ingestv1.SecretRef{Env: "TRAWL_SECRET_HOOK"}})
	}
	specs = append(specs,
		&ingestv1.Source{Name: "unset", Kind: "github", Owner: "acme", WebhookSecret: &ingestv1.SecretRef{Env: "TRAWL_SECRET_UNSET"}},
		&ingestv1.Source{Name: "none", Kind: "gitlab", Owner: "acme"})
	if _, err := store.ApplySources(t.Context(), specs); err != nil {
		t.Fatal(err)
	}
	testrun.Eventually(t, "the view has the sources", func(context.Context) error { _, err := sources.Get("none"); return err })
	return w
}

// Publish implements Jobs.
func (w *world) Publish(_ context.Context, job queue.Job) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.jobs = append(w.jobs, job)
	return nil
}

// put makes the repo desired by a source.
func (w *world) put(source string, branches ...string) {
	w.t.Helper()
	_, _, err := w.store.PutDesired(w.t.Context(), &catalogv1.Desired{Name: w.repo, Url: "https://" + w.repo, Source: source, Branches: branches})
	if err != nil {
		w.t.Fatal(err)
	}
}

// publish does the newest request, at a commit of main.
func (w *world) publish(commit string) {
	w.t.Helper()
	if err := index(w.t.Context(), w.store, w.repo, func() string { return commit }, 0); err != nil {
		w.t.Fatal(err)
	}
}

// index does what a job does: it looks at the remote, takes its time and publishes.
func index(ctx context.Context, store *catalog.Store, repo string, head func() string, takes time.Duration) error {
	lease, err := store.AcquireLease(ctx, repo, time.Minute)
	if err != nil {
		return err
	}
	commit := head()
	time.Sleep(takes)
	_, err = store.Publish(ctx, lease, lease.Root(), &catalogv1.Root{
		Repo: repo, Generation: lease.NextGeneration(), Epoch: lease.Desired().GetEpoch(), Branches: []*catalogv1.Branch{{Name: "main", Commit: commit}},
	})
	return errors.Join(err, lease.Release(ctx))
}

// send sends a webhook and returns the status of the response.
func (w *world) send(source string, h http.Header, body string) int {
	mux := http.NewServeMux()
	mux.Handle(WebhookPattern, w)
	r := httptest.NewRequestWithContext(w.t.Context(), http.MethodPost, "/hooks/"+source, strings.NewReader(body))
	r.Header = h
	answer := httptest.NewRecorder()
	mux.ServeHTTP(answer, r)
	return answer.Code
}

// count is the number of webhooks with an outcome.
func (w *world) count(o outcome) int {
	w.t.Helper()
	families, err := w.registry.Gather()
	if err != nil {
		w.t.Fatal(err)
	}
	for _, m := range families[0].GetMetric() {
		if m.GetLabel()[0].GetValue() == o.name {
			return int(m.GetCounter().GetValue())
		}
	}
	w.t.Fatalf("%s is not counted", o.name)
	return 0
}

func mac(key, body string) string {
	m := hmac.New(sha256.New, []byte(key))
	_, _ = io.WriteString(m, body)
	return hex.EncodeToString(m.Sum(nil))
}

// host is how a host reports a push to main.
type host struct {
	body func(branch, commit string) string
	sign func(key, body string) http.Header
}

func header(pairs ...string) http.Header {
	h := http.Header{}
	for i := 0; i < len(pairs); i += 2 {
		h.Set(pairs[i], pairs[i+1])
	}
	return h
}

func hubBody(branch, commit string) string {
	return fmt.Sprintf(`{"ref":"refs/heads/%s","after":%q,"repository":{"clone_url":"https://git.example.com/acme/a.git"}}`, branch, commit)
}

var hosts = map[string]host{
	"github": {hubBody, func(key, body string) http.Header {
		return header("X-Github-Event", "push", "X-Hub-Signature-256", "sha256="+mac(key, body))
	}},
	"gitea": {hubBody, func(key, body string) http.Header {
		return header("X-Gitea-Event", "push", "X-Gitea-Signature", mac(key, body))
	}},
	"gitlab": {func(branch, commit string) string {
		return fmt.Sprintf(`{"ref":"refs/heads/%s","after":%q,"project":{"git_http_url":"https://git.example.com/acme/a.git"}}`, branch, commit)
	}, func(key, _ string) http.Header { return header("X-Gitlab-Event", "Push Hook", "X-Gitlab-Token", key) }},
	"bitbucket": {func(branch, commit string) string {
		return fmt.Sprintf(`{"repository":{"links":{"html":{"href":"https://git.example.com/acme/a"}}},`+
			`"push":{"changes":[{"new":{"type":"branch","name":%q,"target":{"hash":%q}}}]}}`, branch, commit)
	}, func(key, body string) http.Header {
		return header("X-Event-Key", "repo:push", "X-Hub-Signature", "sha256="+mac(key, body))
	}},
	"bitbucket-server": {func(branch, commit string) string {
		return fmt.Sprintf(`{"eventKey":"repo:refs_changed","repository":{"slug":"a","project":{"key":"ACME"}},`+
			`"changes":[{"ref":{"id":"refs/heads/%s","type":"BRANCH"},"toHash":%q,"type":"UPDATE"}]}`, branch, commit)
	}, func(key, body string) http.Header {
		return header("X-Event-Key", "repo:refs_changed", "X-Hub-Signature", "sha256="+mac(key, body))
	}},
	"gerrit": {func(branch, commit string) string {
		return fmt.Sprintf(`{"type":"ref-updated","refUpdate":{"project":"acme/a","refName":"refs/heads/%s","newRev":%q}}`, branch, commit)
	}, func(key, _ string) http.Header { return header("X-Trawl-Token", key) }},
}

// eachHost runs a test with the host of every kind.
func eachHost(t *testing.T, test func(t *testing.T, w *world, kind string, h host)) {
	for kind, h := range hosts {
		t.Run(kind, func(t *testing.T) {
			w := newWorld(t)
			if kind == "bitbucket-server" { // which clones from below /scm
				w.repo = "git.example.com/scm/acme/a"
			}
			test(t, w, kind, h)
		})
	}
}

// TestPushes: a push requests one new build of its repo, and a replay requests none.
func TestPushes(t *testing.T) {
	eachHost(t, func(t *testing.T, w *world, kind string, h host) {
		w.put(kind)
		w.publish("c1")
		push := h.body("main", "c2")
		send := func(what string, body string, want outcome, jobs int) {
			t.Helper()
			before := w.count(want)
			if got := w.send(kind, h.sign(secret, body), body); got != want.status || w.count(want) != before+1 || len(w.jobs) != jobs {
				t.Errorf("%s: HTTP %d, %d jobs; want %v, %d", what, got, len(w.jobs), want, jobs)
			}
		}
		send("a push", push, queued, 1)
		send("a replay while it waits", push, merged, 1)
		w.publish("c2")
		send("a replay afterwards", push, current, 1)
		send("a branch that is not indexed", h.body("feature", "c3"), current, 1)
		send("nonsense", "{", ignored, 1)
		send("another push", h.body("main", "c3"), queued, 2)
	})
}

// TestWhatWasPushedIsSeen: the status shows the pushed commit, even if a request was already
// waiting, unless the branch is not indexed.
func TestWhatWasPushedIsSeen(t *testing.T) {
	commit := func(digit string) string { return strings.Repeat(digit, 40) }
	eachHost(t, func(t *testing.T, w *world, kind string, h host) {
		w.put(kind)
		w.publish(commit("1"))
		for _, step := range []struct{ what, branch, commit, want string }{
			{"a push", "main", commit("2"), commit("2")},
			{"another, while the first waits", "main", commit("3"), commit("3")},
			{"to another branch", "feature", commit("4"), commit("3")},
			{"a deletion", "main", commit("0"), commit("3")},
			{"no commit", "main", "<script>", commit("3")},
		} {
			body := h.body(step.branch, step.commit)
			w.send(kind, h.sign(secret, body), body)
			status, err := w.store.RepoStatus(t.Context(), w.repo)
			f := status.GetFreshness()
			if err != nil || f.GetSeenCommit() != step.want || f.GetSeenBy() != ingestv1.SeenBy_SEEN_BY_WEBHOOK || f.GetIndexedCommit() != commit("1") || f.GetBehindSince() == nil {
				t.Errorf("%s: %v, %v", step.what, f, err)
			}
		}
	})
}

// TestForged: a webhook that is not signed with the secret does nothing, and is counted.
func TestForged(t *testing.T) {
	eachHost(t, func(t *testing.T, w *world, kind string, h host) {
		w.put(kind)
		w.publish("c1")
		body := h.body("main", "c2")
		signed := h.sign(secret, body)
		unsigned := h.sign("", body)
		empty := http.Header{}
		for i, c := range []struct {
			source string
			header http.Header
			body   string
		}{
			{kind, h.sign("another", body), body}, {kind, unsigned, body}, {kind, empty, body},
			{kind + "x", signed, body}, {"unset", signed, body}, {"none", header("X-Gitlab-Event", "Push Hook", "X-Gitlab-Token", ""), body},
		} {
			if got := w.send(c.source, c.header, c.body); got != http.StatusUnauthorized || w.count(forged) != i+1 {
				t.Errorf("%d: HTTP %d, %d counted", i, got, w.count(forged))
			}
		}
		if kind != "gitlab" && kind != "gerrit" { // which send the secret instead of a signature
			if got := w.send(kind, signed, body+" "); got != http.StatusUnauthorized {
				t.Errorf("another body: HTTP %d", got)
			}
		}
		if d, err := w.store.GetDesired(t.Context(), w.repo); err != nil || d.Record.GetEpoch() != 1 || len(w.jobs) > 0 {
			t.Errorf("%v, %v, jobs %v", d.Record, err, w.jobs)
		}
		if strings.Contains(w.log.String(), secret) {
			t.Errorf("the secret is logged: %s", w.log.String())
		}
	})
}

// TestOthersRepos: a source's secret is valid for the source's repos alone.
func TestOthersRepos(t *testing.T) {
	eachHost(t, func(t *testing.T, w *world, kind string, h host) {
		body := h.body("main", "c2")
		if got := w.send(kind, h.sign(secret, body), body); got != ignored.status {
			t.Errorf("a repo that is not desired: HTTP %d", got)
		}
		w.put("another")
		if got := w.send(kind, h.sign(secret, body), body); got != ignored.status || w.count(ignored) != 2 || len(w.jobs) > 0 {
			t.Errorf("another's repo: HTTP %d, jobs %v", got, w.jobs)
		}
	})
}

func TestLimits(t *testing.T) {
	w := newWorld(t)
	w.put("github")
	large := strings.Repeat(" ", maxBody+1)
	if got := w.send("github", hosts["github"].sign(secret, large), large); got != http.StatusRequestEntityTooLarge {
		t.Errorf("a large one: HTTP %d", got)
	}
	body := hubBody("main", "c1")
	sender := fair.Network(httptest.NewRequest(http.MethodPost, "/", nil).RemoteAddr)
	for w.bodies.Take(sender, piece) {
	}
	if got := w.send("github", hosts["github"].sign(secret, body), body); got != http.StatusServiceUnavailable {
		t.Errorf("too many: HTTP %d", got)
	}
	w.bodies.Give(sender, w.bodies.Taken())
	w.etcd = func(context.Context) error { return errors.New("away") }
	if got := w.send("github", hosts["github"].sign(secret, body), body); got != http.StatusServiceUnavailable {
		t.Errorf("etcd is away: HTTP %d", got)
	}
	if n := w.bodies.Taken(); n != 0 {
		t.Errorf("%d bytes were not given back", n)
	}
}

// TestForgeriesCostNoRead: a webhook without a valid signature costs no request to etcd.
func TestForgeriesCostNoRead(t *testing.T) {
	w := newWorld(t)
	w.put("github")
	asked := 0
	w.etcd = func(ctx context.Context) error { asked++; return ctx.Err() }
	body := hubBody("main", "c1")
	for range 100 {
		for source, h := range map[string]http.Header{"nowhere": hosts["github"].sign(secret, body), "github": hosts["github"].sign("wrong", body), "none": {}} {
			if got := w.send(source, h, body); got != http.StatusUnauthorized {
				t.Fatalf("%s: %d", source, got)
			}
		}
	}
	if asked > 0 {
		t.Errorf("etcd was asked %d times", asked)
	}
}

// TestBranchPatterns: a push to a branch that a pattern matches requests a build, and so does a
// deleted branch.
func TestBranchPatterns(t *testing.T) {
	w := newWorld(t)
	w.put("github", "main", "release/*", "refs/heads/next", "refs/tags/*")
	w.publish("c1")
	for branch, want := range map[string]outcome{"release/1": queued, "next": queued, "feature": current, "tags/v1": current} {
		body := hubBody(branch, "c9")
		if got := w.send("github", hosts["github"].sign(secret, body), body); got != want.status {
			t.Errorf("%s: HTTP %d, want %v", branch, got, want)
		}
		w.publish("c1")
	}
	body := `{"repository":{"links":{"html":{"href":"https://git.example.com/acme/a"}}},"push":{"changes":[{"new":null}]}}`
	w.put("bitbucket")
	w.publish("c1")
	if got := w.send("bitbucket", hosts["bitbucket"].sign(secret, body), body); got != queued.status {
		t.Errorf("a deleted branch: HTTP %d", got)
	}
}

// TestStorm: a thousand pushes in a minute cost few builds, and in the end the last push can be
// searched.
func TestStorm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.put("github")
		w.publish("c0")
		const pushes, building = 1000, 3 * time.Second
		var mu sync.Mutex
		head, builds := "c0", 0
		now := func() string { mu.Lock(); defer mu.Unlock(); builds++; return head }
		ctx, cancel := context.WithCancel(t.Context())
		var indexer sync.WaitGroup
		indexer.Go(func() { serve(ctx, w, func() error { return index(ctx, w.store, w.repo, now, building) }) })
		for i := range pushes {
			mu.Lock()
			head = fmt.Sprint("c", i+1)
			body := hubBody("main", head)
			mu.Unlock()
			if got := w.send("github", hosts["github"].sign(secret, body), body); got != http.StatusAccepted {
				t.Fatalf("push %d: HTTP %d", i, got)
			}
			time.Sleep(time.Minute / pushes)
		}
		time.Sleep(time.Minute)
		cancel()
		indexer.Wait()
		root, err := w.store.GetRoot(t.Context(), w.repo)
		if err != nil || root.Record.GetBranches()[0].GetCommit() != fmt.Sprint("c", pushes) {
			t.Errorf("%v, %v", root.Record, err)
		}
		if len(w.jobs) > 8 || builds > 8 {
			t.Errorf("%d jobs and %d builds", len(w.jobs), builds)
		}
		t.Logf("%d pushes: %d jobs, %d builds", pushes, len(w.jobs), builds)
	})
}

// serve does the newest request whenever there is one and its turn has come.
func serve(ctx context.Context, w *world, build func() error) {
	for ctx.Err() == nil {
		desired, err := w.store.GetDesired(ctx, w.repo)
		root, rootErr := w.store.GetRoot(ctx, w.repo)
		turn := desired.Record.GetNotBefore()
		if errors.Join(err, rootErr) == nil && root.Record.GetEpoch() < desired.Record.GetEpoch() && (turn == nil || !time.Now().Before(turn.AsTime())) {
			if err := build(); err != nil && ctx.Err() == nil {
				w.t.Error(err)
			}
		}
		time.Sleep(50 * time.Millisecond)
	}
}
