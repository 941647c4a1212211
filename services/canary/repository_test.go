package canary

import (
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// serve serves a repository over HTTP and returns its URL.
func serve(t *testing.T, r *repository) string {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+repositoryPath+"/info/refs", r.advertise)
	mux.HandleFunc("POST "+repositoryPath+"/git-upload-pack", r.uploadPack)
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server.URL + repositoryPath
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
			var r repository
			url, dir := serve(t, &r), t.TempDir()
			if out, err := git(t, dir, "init", "-q", "--bare"); err != nil {
				t.Fatal(out)
			}
			for range 3 {
				word := r.push(time.Unix(1, 0))
				fetch := append([]string{"-c", "protocol.version=" + version, "-c", "fetch.fsckObjects=true", "fetch", "-q", "--force", "--update-shallow"}, depth...)
				if out, err := git(t, dir, append(fetch, url, "HEAD:refs/heads/main")...); err != nil {
					t.Fatalf("version %s %v: %s", version, depth, out)
				}
				if out, err := git(t, dir, "show", "main:"+needlePath); err != nil || out != word+"\n" {
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
	var r repository
	if out, err := git(t, t.TempDir(), "clone", "-q", serve(t, &r), filepath.Join(t.TempDir(), "x")); err == nil || !strings.Contains(out, "not found") {
		t.Errorf("%s, %v", out, err)
	}
}

// TestRequestsThatAreNotGits get an error, and a commit that was replaced is not sent.
func TestRequestsThatAreNotGits(t *testing.T) {
	var r repository
	r.push(time.Unix(1, 0))
	url := serve(t, &r)
	for body, want := range map[string]int{
		"":           http.StatusOK,
		"zzzz":       http.StatusBadRequest,
		"0001":       http.StatusBadRequest,
		"0032want 1": http.StatusBadRequest,
		"00":         http.StatusBadRequest,
		line("want %s\n", strings.Repeat("0", 40)) + flush + line("done\n"): http.StatusOK,
		strings.Repeat(line("have %s\n", strings.Repeat("0", 40)), 2000):    http.StatusBadRequest,
	} {
		resp, err := http.Post(url+"/git-upload-pack", "application/x-git-upload-pack-request", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		var answer strings.Builder
		err = resp.Write(&answer)
		resp.Body.Close()
		if err != nil {
			t.Fatal(err)
		}
		if resp.StatusCode != want || strings.Contains(answer.String(), "PACK") {
			t.Errorf("%.40q: %.200s", body, answer.String())
		}
	}
	resp, err := http.Get(url + "/info/refs")
	if err != nil || resp.StatusCode != http.StatusNotFound {
		t.Fatalf("the dumb protocol: %v, %v", resp, err)
	}
	resp.Body.Close()
}

// FuzzReadWant: no request brings the canary down, and none is taken as complete that is not.
func FuzzReadWant(f *testing.F) {
	f.Add(line("want %s shallow\n", strings.Repeat("0", 40)) + line("deepen 1\n") + flush + line("done\n"))
	f.Add("ffff")
	f.Fuzz(func(t *testing.T, body string) {
		if w, err := readWant(strings.NewReader(body)); err == nil && w.done && !strings.Contains(body, "done") {
			t.Errorf("%q is done", body)
		}
	})
}
