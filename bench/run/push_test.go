package run

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestPushedCommits: each commit adds one line to one file, and the original stays as it is.
func TestPushedCommits(t *testing.T) {
	from := filepath.Join(t.TempDir(), "from")
	git := func(args ...string) string {
		t.Helper()
		out, err := exec.CommandContext(t.Context(), "git", append([]string{"-C", from, "-c", "user.name=a", "-c", "user.email=a@b"}, args...)...).CombinedOutput()
		if err != nil {
			t.Fatalf("git %v: %v: %s", args, err, out)
		}
		return string(out)
	}
	if out, err := exec.CommandContext(t.Context(), "git", "init", "-q", from).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for name, text := range map[string]string{"a b": "one\n", "c": "two\n"} {
		if err := os.WriteFile(filepath.Join(from, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	git("add", ".")
	git("commit", "-qm", "base")
	head := git("rev-parse", "HEAD")
	r, err := copyRepo(t.Context(), from, filepath.Join(t.TempDir(), "to"), 1)
	if err != nil || len(r.files) != 2 {
		t.Fatal(r, err)
	}
	for i := range 3 {
		p, err := r.commit(t.Context(), fmt.Sprint("token", i))
		if err != nil || p.wroteBytes != 7 || p.fileBytes < 11 {
			t.Fatal(p, err)
		}
		changed, err := r.git(t.Context(), "", "diff-tree", "-r", "--numstat", "HEAD~", "HEAD")
		if err != nil || !strings.HasPrefix(changed, "1\t0\t") || strings.Count(changed, "\n") != 1 {
			t.Errorf("commit %d: %q, %v", i, changed, err)
		}
	}
	if now := git("rev-parse", "HEAD"); now != head {
		t.Errorf("the original is at %s", now)
	}
}

func TestCountersAreRead(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, "# HELP trawl_indexer_shards_total x\ntrawl_indexer_shards_total 3\ntrawl_indexer_documents_total{kind=\"searchable\"} 4\n"+
			"trawl_indexer_documents_total{kind=\"by name\"} 1\ntrawl_indexer_content_bytes_total 1.5e+06\ntrawl_indexer_shard_bytes_total 7\nother 9\n")
	}))
	defer server.Close()
	got, err := readCounters(t.Context(), strings.TrimPrefix(server.URL, "http://"))
	if want := (counters{documents: 5, content: 1.5e6, shards: 3, stored: 7}); err != nil || got != want {
		t.Errorf("%+v, %v, want %+v", got, err, want)
	}
}

// TestPushReport: the text has the figures.
func TestPushReport(t *testing.T) {
	p := &pusher{
		cfg: PushConfig{Repo: "/x/linux"}, repo: &pushedRepo{files: []string{"a"}}, after: counters{content: 2200, stored: 3300},
		pushes: []push{{searchable: 300 * time.Millisecond, fileBytes: 600, wroteBytes: 20, built: "delta: x"}, {searchable: 900 * time.Millisecond, fileBytes: 500, built: "delta: x"}},
	}
	var text, picture bytes.Buffer
	p.report(t.Context(), &text, time.Now())
	for _, want := range []string{"searchable    300    900    900    900", "2.00 for each byte", "3.00 for each byte", "delta: x             2", "  300   900"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("%q is not in\n%s", want, text.String())
		}
	}
	if err := p.plot(&picture, time.Now()); err != nil || !strings.Contains(picture.String(), "searchable") {
		t.Errorf("%v: %s", err, picture.String())
	}
}
