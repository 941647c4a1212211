package canary

import (
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// serve serves what a canary pushed last over HTTP and returns its URL.
func serve(t *testing.T, c *Canary) string {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+repositoryPath+"/{file...}", c.serve)
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server.URL + repositoryPath
}

func (c *Canary) pushed() *commit {
	c.repo.Store(newCommit())
	return c.repo.Load()
}

func git(t *testing.T, dir string, args ...string) (string, error) {
	t.Helper()
	cmd := exec.Command("git", append([]string{"-C", dir}, args...)...)
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null", "GIT_TERMINAL_PROMPT=0")
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// TestGitFetchesEachPush: git finds every push sound and fetches it, in every version of its protocol, into a clone that
// is new or has earlier pushes.
func TestGitFetchesEachPush(t *testing.T) {
	for _, version := range []string{"0", "1", "2"} {
		var r Canary
		url, dir := serve(t, &r), t.TempDir()
		if out, err := git(t, dir, "init", "-q", "--bare"); err != nil {
			t.Fatal(out)
		}
		for range 3 {
			word := r.pushed().word
			if out, err := git(t, dir, "-c", "protocol.version="+version, "fetch", "-q", "--force", url, "HEAD:refs/heads/main"); err != nil {
				t.Fatalf("version %s: %s", version, out)
			}
			if out, err := git(t, dir, "show", "main:"+needlePath); err != nil || out != word+"\n" {
				t.Errorf("version %s: got %q, want %q", version, out, word)
			}
			if out, err := git(t, dir, "fsck", "--strict"); err != nil {
				t.Errorf("version %s: %s", version, out)
			}
		}
		if out, err := git(t, dir, "ls-remote", "--symref", url); err != nil || !strings.Contains(out, "ref: refs/heads/main\tHEAD") || !strings.Contains(out, "\trefs/heads/main\n") {
			t.Errorf("ls-remote: %s", out)
		}
	}
}

// TestOnlyTheLastPushIsServed: of a commit that was replaced, and beside the repository, there is nothing.
func TestOnlyTheLastPushIsServed(t *testing.T) {
	var r Canary
	old, now := r.pushed(), r.pushed()
	url := serve(t, &r)
	status := func(file string) int {
		resp, err := http.Get(url + "/" + file)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		return resp.StatusCode
	}
	replaced := 0
	for file := range old.files {
		if _, ok := now.files[file]; !ok {
			replaced++
			if got := status(file); got != http.StatusNotFound {
				t.Errorf("%s of a replaced push: status %d", file, got)
			}
		}
	}
	if replaced != 3 {
		t.Errorf("%d objects were replaced", replaced)
	}
	for file, want := range map[string]int{"HEAD": http.StatusOK, "info/refs": http.StatusOK, "": http.StatusNotFound, "config": http.StatusNotFound} {
		if got := status(file); got != want {
			t.Errorf("%q: status %d, want %d", file, got, want)
		}
	}
}
