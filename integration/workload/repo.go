package workload

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
)

// Repo is a Git repository whose commit n has a file that contains "stamp<n>", and other files
// that do not change.
type Repo struct {
	// Name is the repo's name in Trawl; indexers clone it from URL.
	Name, URL string

	dir  string // the work tree
	push string // where its commits are pushed to; empty: nowhere, URL is dir
	// committed is the number of the last commit; shown is that of the last published one.
	committed, shown atomic.Int64
}

// NewRepo makes repository i of a workload, with a first commit, in a new folder. Its commits
// are pushed to the URL push; if that is empty, indexers read the folder itself.
func NewRepo(ctx context.Context, i int, dir, name, url, push string) (*Repo, error) {
	r := &Repo{Name: name, URL: url, dir: dir, push: push}
	var source strings.Builder
	for line := range 600 {
		fmt.Fprintf(&source, "func heron%d_%d() { return kingFisher(%d) } // in repo%d\n", i, line*line%701, line%7, i)
	}
	files := map[string]string{"heron.go": source.String(), "doc/same.md": "The kingfisher is the same in each.\n"}
	for n := range 9 { // files that no commit changes
		files[fmt.Sprintf("other/%d.txt", n)] = "an egret\n"
	}
	for path, text := range files {
		full := filepath.Join(dir, path)
		if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
			return nil, err
		}
		if err := os.WriteFile(full, []byte(text), 0o644); err != nil {
			return nil, err
		}
	}
	if err := r.git(ctx, "init", "-q", "-b", "main"); err != nil {
		return nil, err
	}
	return r, r.commit(ctx, 0)
}

// commit makes commit n.
func (r *Repo) commit(ctx context.Context, n int64) error {
	stamp := fmt.Sprintf("the last commit is stamp%d here\n", n)
	if err := os.WriteFile(filepath.Join(r.dir, "now.txt"), []byte(stamp), 0o644); err != nil {
		return err
	}
	if err := r.git(ctx, "add", "-A"); err != nil {
		return err
	}
	if err := r.git(ctx, "commit", "-q", "-m", "next"); err != nil {
		return err
	}
	if r.push == "" {
		return nil
	}
	return r.git(ctx, "push", "-q", "--force", r.push, "main")
}

func (r *Repo) git(ctx context.Context, args ...string) error {
	cmd := exec.CommandContext(ctx, "git", append([]string{"-C", r.dir, "-c", "user.name=T", "-c", "user.email=t@example.org"}, args...)...)
	for _, line := range os.Environ() {
		if !strings.HasPrefix(line, "GIT_") {
			cmd.Env = append(cmd.Env, line)
		}
	}
	cmd.Env = append(cmd.Env, "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("git %s: %w: %s", args[0], err, out)
	}
	return nil
}
