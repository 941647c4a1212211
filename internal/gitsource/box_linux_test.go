package gitsource

import (
	"bytes"
	"compress/zlib"
	"crypto/sha1"
	"encoding/binary"
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

// TestGitIsInABox: git reads no file beside its repository, even where an odd
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

// chainBomb is a pack of a blob of zeros and a delta that makes size bytes of it by copying
// it again and again: small for the one who sends it, and held whole by git.
func chainBomb(t *testing.T, size int) []byte {
	t.Helper()
	const base = 1 << 20
	compressed := func(data []byte) []byte {
		var b bytes.Buffer
		w := zlib.NewWriter(&b)
		if _, err := w.Write(data); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
	header := func(kind byte, n int) []byte {
		h := []byte{kind<<4 | byte(n&15)}
		for n >>= 4; n > 0; n >>= 7 {
			h[len(h)-1] |= 0x80
			h = append(h, byte(n&0x7f))
		}
		return h
	}
	zeros := make([]byte, base)
	delta := binary.AppendUvarint(binary.AppendUvarint(nil, base), uint64(size))
	for range size / base {
		delta = append(delta, 0x80|0x40, 0x10) // copy from offset 0: the third byte of the length is 0x10
	}
	pack := append([]byte("PACK"), 0, 0, 0, 2, 0, 0, 0, 2)
	const blob, offsetDelta = 3, 6
	first := append(header(blob, base), compressed(zeros)...)
	pack = append(pack, first...)
	pack = append(pack, header(offsetDelta, len(delta))...)
	offset := len(first) // one byte less for each further one, from the last
	back := []byte{byte(offset & 0x7f)}
	for offset >>= 7; offset > 0; offset >>= 7 {
		offset--
		back = append([]byte{0x80 | byte(offset&0x7f)}, back...)
	}
	pack = append(append(pack, back...), compressed(delta)...)
	sum := sha1.Sum(pack)
	return append(pack, sum[:]...)
}

// TestPackBomb: a small pack that inflates to more than git may hold ends with a reason
// that names the limit.
func TestPackBomb(t *testing.T) {
	mirror := t.TempDir()
	f := newFetcher(t, func(c *FetchConfig) { c.Memory = 256 * config.MiB })
	pack := chainBomb(t, 1<<30)
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
	// The same pack within the limit is sound, so that it was the limit that ended git.
	_, err = s.local(t.Context(), mirror, bytes.NewReader(chainBomb(t, 32<<20)), "index-pack", "--stdin", "--fix-thin")
	if err != nil {
		t.Error(err)
	}
}

// TestHugeBlob: a blob larger than git's memory is fetched, since git does not hold it whole.
func TestHugeBlob(t *testing.T) {
	if testing.Short() {
		t.Skip("writes 300 MB")
	}
	r := gitsourcetest.New(t)
	r.Git("config", "core.bigFileThreshold", "64m")
	hash := exec.CommandContext(t.Context(), "git", "-C", r.Dir, "hash-object", "-w", "--stdin")
	hash.Stdin = io.LimitReader(zeros{}, 300<<20)
	out, err := hash.Output()
	if err != nil {
		t.Fatal(err)
	}
	r.Git("update-index", "--add", "--cacheinfo", "100644,"+strings.TrimSpace(string(out))+",huge")
	r.Git("update-ref", "refs/heads/main", r.Git("commit-tree", "-m", "x", r.Git("write-tree")))
	f := newFetcher(t, func(c *FetchConfig) { local(r)(c); c.Memory = 256 * config.MiB })
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

// TestKilledByTheMachine: a kill from outside is a failure that passes, with a reason.
func TestKilledByTheMachine(t *testing.T) {
	g := gitRun{box: reading(0), env: gitEnv(nil), maxOutput: 1 << 10}
	_, err := g.run(t.Context(), nil, "-c", "alias.x=!kill -9 $PPID", "x")
	wantFailure(t, err, Killed, "more memory")
}
