package integration

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// repository is a Git repository of a test.
type repository struct {
	t    *testing.T
	path string
}

// newRepository makes an empty repository below dir.
func newRepository(t *testing.T, dir, name string) *repository {
	t.Helper()
	r := &repository{t: t, path: filepath.Join(dir, name)}
	if err := os.MkdirAll(r.path, 0o755); err != nil {
		t.Fatal(err)
	}
	r.git("init", "-q", "-b", "main")
	return r
}

// git runs git in the repository and returns what it prints.
func (r *repository) git(args ...string) string {
	r.t.Helper()
	cmd := exec.Command("git", append([]string{"-C", r.path, "-c", "user.name=T", "-c", "user.email=t@example.org", "-c", "protocol.file.allow=always"}, args...)...)
	cmd.Env = append(processEnv(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null")
	out, err := cmd.CombinedOutput()
	if err != nil {
		r.t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// write sets the content of a file of the work tree.
func (r *repository) write(path, content string) {
	r.t.Helper()
	full := filepath.Join(r.path, path)
	if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
		r.t.Fatal(err)
	}
	if err := os.WriteFile(full, []byte(content), 0o644); err != nil {
		r.t.Fatal(err)
	}
}

// commit commits the whole work tree and returns the commit's id.
func (r *repository) commit(message string) string {
	r.t.Helper()
	r.git("add", "-A", "-f")
	r.git("commit", "-q", "--allow-empty", "-m", message)
	return r.git("rev-parse", "HEAD")
}
