package search_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/trawl-search/trawl/internal/testrun"
)

// TestConformanceOfZoekt runs each case that is marked as agreeing with zoekt in zoekt itself,
// over the same files.
func TestConformanceOfZoekt(t *testing.T) {
	var programs []string
	for _, name := range []string{"git", "zoekt-git-index", "zoekt-webserver"} {
		path, err := exec.LookPath(name)
		if err != nil {
			t.Skipf("%s is not on the PATH; zoekt is sourcegraph/zoekt at c4d8f353", name)
		}
		programs = append(programs, path)
	}
	ask := startPeer(t, programs[0], programs[1], programs[2])
	cases, _ := conformanceCases(t)
	compared := 0
	for i := range cases {
		c := &cases[i]
		if c.kind != "zoekt" {
			continue
		}
		compared++
		found, err := ask(c.query)
		want := withoutSkipped(c.meaning[len(c.meaning)-1])
		switch {
		case strings.HasPrefix(want, "error"):
			if err == nil {
				t.Errorf("line %d: %s: zoekt finds %q, not an error", c.line, c.text, found)
			}
		case err != nil:
			t.Errorf("line %d: %s: zoekt: %v", c.line, c.text, err)
		case found != want:
			t.Errorf("line %d: %s\nzoekt %s\n here %s", c.line, c.text, found, want)
		}
	}
	if compared < 300 {
		t.Errorf("only %d cases are compared", compared)
	}
}

// withoutSkipped removes the file without content: zoekt indexes a text in its place that says
// so.
func withoutSkipped(finds string) string {
	if finds == "finds pond/bin/data" {
		return "finds nothing"
	}
	for _, branch := range []string{"", "@release/1"} {
		finds = strings.TrimSuffix(strings.Replace(finds+"  ", "pond/bin/data"+branch+"  ", "", 1), "  ")
	}
	return finds
}

// startPeer indexes the corpus with zoekt and serves it until the test ends.
func startPeer(t *testing.T, git, indexer, webserver string) func(query string) (found string, err error) {
	t.Helper()
	dir := t.TempDir()
	run := func(name string, args ...string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), name, args...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s %q: %v\n%s", name, args, err, out)
		}
	}
	for _, r := range conformanceCorpus().Repos {
		at := filepath.Join(dir, r.Name)
		run(git, "init", "-q", at)
		run(git, "-C", at, "config", "zoekt.name", r.Name) // without a name zoekt ignores the other settings
		for key, is := range map[string]bool{"zoekt.archived": r.Archived, "zoekt.fork": r.Fork, "zoekt.public": r.Public} {
			run(git, "-C", at, "config", key, map[bool]string{true: "1", false: "0"}[is])
		}
		for _, branch := range r.Branches {
			run(git, "-C", at, "checkout", "-q", "--orphan", branch)
			run(git, "-C", at, "rm", "-rfq", "--ignore-unmatch", ".")
			for _, d := range r.Documents {
				if slices.Contains(d.Branches, branch) && !d.Skipped {
					writeFile(t, filepath.Join(at, d.Path), d.Content)
				}
			}
			run(git, "-C", at, "add", ".")
			run(git, "-C", at, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "all")
		}
		run(indexer, "-disable_ctags", "-index", filepath.Join(dir, "index"), "-branches", strings.Join(r.Branches, ","), at)
	}
	address := testrun.Address(t)
	ctx, cancel := context.WithCancel(context.Background())
	server := exec.CommandContext(ctx, webserver, "-index", filepath.Join(dir, "index"), "-listen", address, "-rpc")
	wait, err := testrun.Start(server)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		_ = wait()
		http.DefaultClient.CloseIdleConnections()
	})
	ask := func(query string) (string, error) { return askPeer(t, "http://"+address+"/api/search", query) }
	testrun.Eventually(t, "zoekt has loaded its shards", func(context.Context) error { // it listens before
		found, err := ask("f:^lake.md$ or f:^README.md$")
		if err == nil && found != "finds lake/lake.md  pond/README.md" {
			err = errors.New(found)
		}
		return err
	})
	return ask
}

func writeFile(t *testing.T, path string, content []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, content, 0o644); err != nil {
		t.Fatal(err)
	}
}

// askPeer sends one query.
func askPeer(t *testing.T, url, query string) (string, error) {
	t.Helper()
	body, err := json.Marshal(map[string]any{"Q": query, "Opts": map[string]any{"ChunkMatches": true}})
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	if resp.StatusCode != http.StatusOK {
		return "", fmt.Errorf("%s: %s", resp.Status, text)
	}
	var answer struct {
		Result struct {
			Files []struct {
				Repository, FileName string
				Branches             []string
				ChunkMatches         []struct {
					FileName bool
					Ranges   []struct{ Start struct{ LineNumber int } }
				}
			}
		}
	}
	if err := json.Unmarshal(text, &answer); err != nil {
		t.Fatal(err)
	}
	var places []string
	for _, f := range answer.Result.Files {
		var lines []int
		for _, chunk := range f.ChunkMatches {
			for _, r := range chunk.Ranges {
				if !chunk.FileName {
					lines = append(lines, r.Start.LineNumber)
				}
			}
		}
		slices.Sort(lines)
		places = append(places, foundPlace(f.Repository, f.FileName, f.Branches, lines))
	}
	if len(places) == 0 {
		places = []string{"nothing"}
	}
	slices.Sort(places)
	return "finds " + strings.Join(places, "  "), nil
}
