// Package gitsourcetest makes real Git repositories for tests, and serves them as
// a Git host does.
package gitsourcetest

import (
	"bytes"
	"compress/zlib"
	"crypto/sha1"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/cgi" //nolint:gosec // the warning is of Go before 1.6.3
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Repo is a real Git repository in a temporary folder.
type Repo struct {
	tb     testing.TB
	format string // of object names: sha1 or sha256
	// Dir is the working tree.
	Dir string
}

// New makes an empty repository whose HEAD is on main.
func New(tb testing.TB) *Repo {
	tb.Helper()
	return newRepo(tb, "sha1")
}

// NewSHA256 is New with object names of 32 bytes.
func NewSHA256(tb testing.TB) *Repo {
	tb.Helper()
	return newRepo(tb, "sha256")
}

func newRepo(tb testing.TB, format string) *Repo {
	tb.Helper()
	r := &Repo{tb, format, filepath.Join(tb.TempDir(), "repo")}
	if err := os.MkdirAll(r.Dir, 0o755); err != nil {
		tb.Fatal(err)
	}
	r.Git("init", "-q", "-b", "main", "--object-format="+format)
	return r
}

// Git runs git in the repository and returns its output without the last newline.
func (r *Repo) Git(args ...string) string {
	r.tb.Helper()
	return r.GitIn("", args...)
}

// GitIn is Git with a standard input.
func (r *Repo) GitIn(stdin string, args ...string) string {
	r.tb.Helper()
	cmd := exec.CommandContext(r.tb.Context(), "git", args...)
	cmd.Dir = r.Dir
	cmd.Stdin = strings.NewReader(stdin)
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=/nonexistent", "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null",
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@b",
		"GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=protocol.file.allow", "GIT_CONFIG_VALUE_0=always",
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		r.tb.Fatalf("git %q: %v\n%s", args, err, out)
	}
	return strings.TrimSuffix(string(out), "\n")
}

// Blob stores a content and returns its name. It writes what git hash-object would,
// without a process for each of the hundreds of blobs in a history.
func (r *Repo) Blob(content string) string {
	r.tb.Helper()
	object := fmt.Appendf(nil, "blob %d\x00%s", len(content), content)
	name := fmt.Sprintf("%x", sha1.Sum(object))
	if r.format == "sha256" {
		name = fmt.Sprintf("%x", sha256.Sum256(object))
	}
	path := filepath.Join(r.Dir, ".git", "objects", name[:2], name[2:])
	var packed bytes.Buffer
	z := zlib.NewWriter(&packed)
	_, err := z.Write(object)
	if err = errors.Join(err, z.Close(), os.MkdirAll(filepath.Dir(path), 0o755)); err != nil {
		r.tb.Fatal(err)
	}
	if err := os.WriteFile(path, packed.Bytes(), 0o644); err != nil {
		r.tb.Fatal(err)
	}
	return name
}

// Commit makes a commit on a branch from lines "MODE OID PATH", without
// touching the working tree, so that any path that Git can hold works.
func (r *Repo) Commit(branch string, entries ...[3]string) string {
	r.tb.Helper()
	r.Git("read-tree", "--empty")
	var stdin strings.Builder
	for _, e := range entries {
		stdin.WriteString(e[0] + " " + e[1] + "\t" + e[2] + "\x00")
	}
	r.GitIn(stdin.String(), "update-index", "-z", "--index-info")
	commit := r.Git("commit-tree", "-m", "x", r.Git("write-tree"))
	r.Git("update-ref", "refs/heads/"+branch, commit)
	return commit
}

// Files commits plain files, given as alternating paths and contents.
func (r *Repo) Files(branch string, pathsAndContents ...string) string {
	r.tb.Helper()
	var entries [][3]string
	blobs := make(map[string]string)
	for pair := range slices.Chunk(pathsAndContents, 2) {
		path, content := pair[0], pair[1]
		if blobs[content] == "" {
			blobs[content] = r.Blob(content)
		}
		entries = append(entries, [3]string{"100644", blobs[content], path})
	}
	return r.Commit(branch, entries...)
}

// Handler serves the repositories below a folder over HTTP, by git's own CGI
// program.
func Handler(tb testing.TB, root string) http.Handler {
	tb.Helper()
	out, err := exec.CommandContext(tb.Context(), "git", "--exec-path").Output()
	if err != nil {
		tb.Fatal(err)
	}
	return &cgi.Handler{
		Path:   filepath.Join(strings.TrimSpace(string(out)), "git-http-backend"),
		Stderr: io.Discard,
		Env: []string{
			"GIT_PROJECT_ROOT=" + root, "GIT_HTTP_EXPORT_ALL=1", "GIT_CONFIG_GLOBAL=/dev/null",
			"GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=safe.directory", "GIT_CONFIG_VALUE_0=*",
		},
	}
}
