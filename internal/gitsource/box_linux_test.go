package gitsource

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/trawl-search/trawl/index/docstore"
	"github.com/trawl-search/trawl/internal/config"
	"github.com/trawl-search/trawl/internal/gitsource/gitsourcetest"
	"github.com/trawl-search/trawl/internal/sandbox"
)

// TestGitIsInABox: git reads no file outside of its repository, even if an odd
// configuration of the repository names one.
func TestGitIsInABox(t *testing.T) {
	if err := sandbox.Support(); err != nil {
		t.Skip(err)
	}
	r := gitsourcetest.New(t)
	r.Files("main", "a", "1")
	secret := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(secret, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	repo, err := OpenRepository(t.Context(), r.Dir, []string{"main"}, Limits{})
	if err != nil {
		t.Fatal(err)
	}
	out, err := repo.git(t.Context(), nil, "hash-object", "--no-filters", "--", secret)
	if err == nil || !strings.Contains(err.Error(), "Permission denied") {
		t.Errorf("git read the file: %s, %v", out, err)
	}
	if _, err := repo.git(t.Context(), []byte("x"), "hash-object", "-w", "--stdin"); err == nil {
		t.Error("git wrote into a repository that is only read")
	}
}

// TestPackBomb: fetching a small pack that inflates to more than git may hold ends with
// a reason that names the limit.
func TestPackBomb(t *testing.T) {
	mirror := t.TempDir()
	f := newFetcher(t, func(c *FetchConfig) { c.Memory = 64 * config.MiB })
	pack := gitsourcetest.PackBomb(t, 1<<30)
	if len(pack) > 64<<10 {
		t.Errorf("the bomb has %d bytes", len(pack))
	}
	s := &session{fetcher: f, env: gitEnv(nil)}
	if _, err := s.local(t.Context(), mirror, nil, "init", "--quiet", "--bare", "--template="); err != nil {
		t.Fatal(err)
	}
	_, err := s.local(t.Context(), mirror, bytes.NewReader(pack), "index-pack", "--stdin", "--fix-thin")
	wantFailure(t, err, TooLarge, "source.git-memory")
	if _, ok := errors.AsType[*sandbox.LimitError](err); !ok {
		t.Errorf("%v has not the type of a limit", err)
	}
	// The same pack within the limit is sound, so the limit ended git before.
	_, err = s.local(t.Context(), mirror, bytes.NewReader(gitsourcetest.PackBomb(t, 32<<20)), "index-pack", "--stdin", "--fix-thin")
	if err != nil {
		t.Error(err)
	}
}

// TestHugeBlob: a blob larger than git's memory is fetched, since git does not hold it whole.
func TestHugeBlob(t *testing.T) {
	r := gitsourcetest.New(t)
	r.Git("config", "core.bigFileThreshold", "16m")
	hash := exec.CommandContext(t.Context(), "git", "-C", r.Dir, "hash-object", "-w", "--stdin")
	hash.Stdin = io.LimitReader(zeros{}, 96<<20)
	out, err := hash.Output()
	if err != nil {
		t.Fatal(err)
	}
	r.Git("update-index", "--add", "--cacheinfo", "100644,"+strings.TrimSpace(string(out))+",huge")
	r.Git("update-ref", "refs/heads/main", r.Git("commit-tree", "-m", "x", r.Git("write-tree")))
	f := newFetcher(t, func(c *FetchConfig) { local(r)(c); c.Memory = 64 * config.MiB })
	mirror := filepath.Join(t.TempDir(), "m")
	branches, err := f.Fetch(t.Context(), mirror, r.Dir, []docstore.Branch{{Name: "main"}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	repo, err := OpenRepository(t.Context(), mirror, []string{branches[0].Name}, Limits{})
	if err != nil {
		t.Fatal(err)
	}
	docs := collect(t, repo)
	if len(docs) != 1 || docs[0].Skip != docstore.TooLarge {
		t.Errorf("got %d documents", len(docs))
	}
}

type zeros struct{}

// Read implements io.Reader.
func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// TestKilledByTheMachine: a kill from outside is a temporary failure, with a reason.
func TestKilledByTheMachine(t *testing.T) {
	g := gitRun{box: reading(0), env: gitEnv(nil), maxOutput: 1 << 10}
	_, err := g.run(t.Context(), nil, "-c", "alias.x=!kill -9 $PPID", "x")
	wantFailure(t, err, Killed, "more memory")
}
