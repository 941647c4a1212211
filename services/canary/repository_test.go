package canary

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// serve serves what a canary pushed last over HTTP and returns its URL.
func serve(t *testing.T, c *Canary) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(c.serve))
	t.Cleanup(server.Close)
	return server.URL + repositoryPath
}

func (c *Canary) pushed() *commit {
	c.repo.Store(newCommit(time.Unix(1, 0)))
	return c.repo.Load()
}

func git(t *testing.T, dir string, args ...string) (string, error) {
	t.Helper()
	cmd := exec.Command("git", append([]string{"-C", dir}, args...)...)
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null", "GIT_TERMINAL_PROMPT=0")
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// TestGitFetchesEachPush: git finds every push sound and fetches it, with and without a limit of the history, in every
// version of its protocol, into a clone that is new or has earlier pushes.
func TestGitFetchesEachPush(t *testing.T) {
	for _, version := range []string{"0", "1", "2"} {
		for _, depth := range [][]string{nil, {"--depth=1"}} {
			var r Canary
			url, dir := serve(t, &r), t.TempDir()
			if out, err := git(t, dir, "init", "-q", "--bare"); err != nil {
				t.Fatal(out)
			}
			for range 3 {
				word := r.pushed().word
				fetch := append([]string{"-c", "protocol.version=" + version, "-c", "fetch.fsckObjects=true", "fetch", "-q", "--force", "--update-shallow"}, depth...)
				if out, err := git(t, dir, append(fetch, url, "HEAD:refs/heads/main")...); err != nil {
					t.Fatalf("version %s %v: %s", version, depth, out)
				}
				if out, err := git(t, dir, "show", "main:"+needlePath); err != nil || out != about+word+"\n" {
					t.Errorf("version %s %v: got %q, want %q", version, depth, out, word)
				}
				if out, err := git(t, dir, "fsck", "--strict"); err != nil {
					t.Errorf("version %s %v: %s", version, depth, out)
				}
			}
			if out, err := git(t, dir, "ls-remote", "--symref", url); err != nil || !strings.Contains(out, "ref: refs/heads/main\tHEAD") || !strings.Contains(out, "\trefs/heads/main\n") {
				t.Errorf("ls-remote: %s", out)
			}
		}
	}
}

// TestEmptyRepository: before the first push there is nothing to fetch, and git says so.
func TestEmptyRepository(t *testing.T) {
	var r Canary
	if out, err := git(t, t.TempDir(), "clone", "-q", serve(t, &r), filepath.Join(t.TempDir(), "x")); err == nil || !strings.Contains(out, "not found") {
		t.Errorf("%s, %v", out, err)
	}
}

// TestRequestsThatAreNotGits get nothing, and a commit that was replaced is not sent.
func TestRequestsThatAreNotGits(t *testing.T) {
	var r Canary
	old := r.pushed().id
	id := r.pushed().id
	if id == old {
		t.Fatal("two pushes are one commit")
	}
	url := serve(t, &r)
	for body, want := range map[string]string{
		"":     "ERR",
		"zzzz": "ERR",
		line("want %s\n", old) + flush + line("done\n"): "ERR",
		line("want %s\n", id) + flush:                   "",
		line("want %s\n", id) + flush + line("done\n"):  "PACK",
	} {
		resp, err := http.Post(url+"/git-upload-pack", "application/x-git-upload-pack-request", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		answer, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if got := string(answer); err != nil || !strings.Contains(got, want) || strings.Contains(got, "PACK") != (want == "PACK") {
			t.Errorf("%q: %.200q, %v", body, got, err)
		}
	}
}
