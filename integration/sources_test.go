package integration

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/trawl-search/trawl/integration/workload"
	"github.com/trawl-search/trawl/internal/gitsource/gitsourcetest"
	"github.com/trawl-search/trawl/internal/testrun"
)

// hostSecret is both the token and the webhook secret of the test's host.
const hostSecret = "s3cr3t-of-the-tests"

// gitHost speaks GitHub's API for the organisation acme, and serves its repositories.
type gitHost struct {
	*httptest.Server

	git http.Handler

	mu    sync.Mutex
	repos []*repository
	down  bool
}

func startHost(t *testing.T, repos ...*repository) *gitHost {
	h := &gitHost{repos: repos, git: gitsourcetest.Handler(t, filepath.Dir(repos[0].path))}
	h.Server = httptest.NewServer(h)
	t.Cleanup(h.Close)
	return h
}

func (h *gitHost) cloneURL(r *repository) string {
	return h.URL + "/" + filepath.Base(r.path) + "/.git"
}

// ServeHTTP implements http.Handler.
func (h *gitHost) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if strings.Contains(r.URL.Path, "/.git/") {
		h.git.ServeHTTP(w, r)
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.down:
		http.Error(w, "down", http.StatusBadGateway)
		return
	case r.URL.Path != "/orgs/acme/repos" || r.Header.Get("Authorization") != "Bearer "+hostSecret:
		http.Error(w, "no", http.StatusUnauthorized)
		return
	}
	list := []map[string]any{}
	for i, repo := range h.repos {
		list = append(list, map[string]any{"id": i + 1, "full_name": "acme/" + filepath.Base(repo.path), "clone_url": h.cloneURL(repo)})
	}
	_ = json.NewEncoder(w).Encode(list)
}

func (h *gitHost) set(change func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	change()
}

// push sends a router the webhook of a push, signed with a key.
func (h *gitHost) push(t *testing.T, c *cluster, r *repository, commit, key string) int {
	t.Helper()
	body, err := json.Marshal(map[string]any{"ref": "refs/heads/main", "after": commit, "repository": map[string]any{"clone_url": h.cloneURL(r)}})
	if err != nil {
		t.Fatal(err)
	}
	mac := hmac.New(sha256.New, []byte(key))
	mac.Write(body)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+c.routerHTTP+"/hooks/acme", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Github-Event", "push")
	req.Header.Set("X-Hub-Signature-256", "sha256="+hex.EncodeToString(mac.Sum(nil)))
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	return resp.StatusCode
}

// TestSources adds, changes and removes the repositories of an organisation.
func TestSources(t *testing.T) {
	c := newCluster(t, 2)
	alpha, beta, _ := threeRepositories(t, c.dir)
	host := startHost(t, alpha, beta)
	c.applySources(t, host, "60m")

	nameOf := func(r *repository, file string) string {
		return strings.TrimPrefix(host.URL, "http://") + "/" + filepath.Base(r.path) + ":" + file
	}
	found := func(text string, want ...string) {
		t.Helper()
		testrun.Eventually(t, text+" is found where it is", func(ctx context.Context) error {
			answer, err := c.query(ctx, text)
			if err != nil {
				return err
			}
			return workload.Compare(answer, want)
		})
	}
	alpha.write("new.txt", "kingfisher\n")
	pushed := alpha.commit("by webhook")
	testrun.Eventually(t, "the repositories are there", func(context.Context) error {
		if out, _, _ := command(t, "repos", "--addr", c.router.addresses(t).GRPC); strings.Count(out, "published") != 2 {
			return fmt.Errorf("repos: %s", out)
		}
		return nil
	})
	if code := host.push(t, c, alpha, pushed, "forged"); code != http.StatusUnauthorized {
		t.Errorf("a forged webhook: HTTP %d", code)
	}
	alpha.write("more.txt", "bittern\n")
	if code := host.push(t, c, alpha, alpha.commit("by webhook"), hostSecret); code != http.StatusAccepted {
		t.Errorf("a webhook: HTTP %d", code)
	}
	found("bittern", nameOf(alpha, "more.txt"))

	c.applySources(t, host, "1s")
	beta.write("polled.txt", "kestrel\n")
	beta.commit("by polling")
	found("kestrel", nameOf(beta, "polled.txt"))

	host.set(func() { host.repos = []*repository{alpha} })
	found("kestrel")
	host.set(func() { host.down = true })
	testrun.Eventually(t, "the host is said to be down", func(context.Context) error {
		out, errs, _ := command(t, "sources", "--addr", c.router.addresses(t).GRPC)
		if !strings.Contains(out, "failing") || !strings.Contains(out, "HTTP 502") || !strings.Contains(out, "next try at") {
			return fmt.Errorf("sources: %s%s", out, errs)
		}
		return nil
	})
	found("bittern", nameOf(alpha, "more.txt"))
	if logs := c.indexer.tail(10_000) + c.router.tail(10_000); strings.Contains(logs, hostSecret) {
		t.Error("the secret is in a log")
	}
}

// applySources makes the host's organisation the only source.
func (c *cluster) applySources(t *testing.T, host *gitHost, every string) {
	t.Helper()
	c.applyFile(t, host.source(every), 1)
}

// source returns a sources file with the host's organisation.
func (h *gitHost) source(every string) string {
	return fmt.Sprintf(`sources:
  - name: acme
    kind: github
    url: %s
    owner: acme
    token: {file: acme}
    webhook_secret: {file: acme}
    every: %s
    grace: 0s
`, h.URL, every)
}

// applyFile applies a sources file with n sources.
func (c *cluster) applyFile(t *testing.T, text string, n int) {
	t.Helper()
	file := filepath.Join(c.dir, "sources.yaml")
	if err := os.MkdirAll(c.credentials(), 0o700); err != nil {
		t.Fatal(err)
	}
	for path, content := range map[string]string{file: text, filepath.Join(c.credentials(), "acme"): hostSecret + "\n"} {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want := fmt.Sprintf("%d sources: ", n)
	if n == 1 {
		want = "1 source: "
	}
	if out, errs, exit := command(t, "sources", "apply", "--addr", c.router.addresses(t).GRPC, "-f", file); exit != 0 || !strings.HasPrefix(out, want) {
		t.Fatalf("exit %d: %s%s", exit, out, errs)
	}
}
