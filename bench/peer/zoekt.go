package peer

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"github.com/trawl-search/trawl/bench/corpus"
)

// zoekt is queried over its JSON API on a loopback address.
type zoekt struct {
	indexer, webserver string
	server             *Server
}

// ZoektPrograms finds zoekt-index and zoekt-webserver in a folder; an empty name means the PATH. ok
// is false if one of them is missing.
func ZoektPrograms(bin string) (indexer, webserver string, ok bool) {
	indexer, webserver = "zoekt-index", "zoekt-webserver"
	if bin != "" {
		indexer, webserver = filepath.Join(bin, indexer), filepath.Join(bin, webserver)
	}
	return indexer, webserver, onPath(indexer) && onPath(webserver)
}

func newZoekt(bin string) *zoekt {
	indexer, webserver, ok := ZoektPrograms(bin)
	if !ok {
		return nil
	}
	return &zoekt{indexer: indexer, webserver: webserver}
}

func (*zoekt) Name() string    { return "zoekt" }
func (*zoekt) CountsAll() bool { return true }

// Version implements Peer.
func (z *zoekt) Version(ctx context.Context) string { return ZoektVersion(ctx, z.webserver) }

// ZoektVersion returns the digest of the server and, if the build recorded it, its revision.
func ZoektVersion(ctx context.Context, webserver string) string {
	version := "zoekt"
	path, err := exec.LookPath(webserver)
	if err == nil {
		version += ", server's SHA-256 " + digest(path)
	}
	out, err := exec.CommandContext(ctx, "go", "version", "-m", path).Output()
	if err != nil {
		return version
	}
	for line := range bytes.Lines(out) {
		if _, revision, ok := bytes.Cut(line, []byte("vcs.revision=")); ok {
			version += ", revision " + string(bytes.TrimSpace(revision))
		}
	}
	return version
}

// digest returns the first bytes of a program's SHA-256, in hexadecimal.
func digest(path string) string {
	program, err := os.ReadFile(path)
	if err != nil {
		return "unknown"
	}
	return fmt.Sprintf("%.16x", sha256.Sum256(program))
}

// maxZoektRepos bounds the number of programs that are started: each takes 0.12 s of processor time
// even for the smallest repos.
const maxZoektRepos = 1000

func (z *zoekt) Index(ctx context.Context, c corpus.Corpus, dir string) (cost Cost, ok bool, err error) {
	if cost, err = IndexZoekt(ctx, z.indexer, c, dir, WithoutCtags); err != nil {
		return cost, !errors.Is(err, ErrTooManyRepos), err
	}
	return cost, true, z.serve(ctx, dir, len(c.Repos))
}

// HasCtags reports whether zoekt-index finds universal-ctags, through the variable CTAGS_COMMAND or
// on the PATH.
func HasCtags() bool { return os.Getenv("CTAGS_COMMAND") != "" || onPath("universal-ctags") }

// Ctags returns the program of universal-ctags: the variable CTAGS_COMMAND, or one on the PATH under its own name or that of
// Debian's package. ok is false if there is none.
func Ctags() (program string, ok bool) {
	for _, program := range []string{os.Getenv("CTAGS_COMMAND"), "universal-ctags", "ctags-universal"} {
		if program != "" && onPath(program) {
			return program, true
		}
	}
	return "", false
}

// Flags of zoekt-index.
const (
	WithoutCtags = "-disable_ctags"
	WithCtags    = "-require_ctags"
)

// RaisedLimits are the flags with which zoekt-index indexes the same files as Trawl: up to 32 MiB,
// whatever the number of their trigrams.
func RaisedLimits() []string { return []string{"-file_limit=33554432", "-max_trigram_count=100000000"} }

// IndexZoekt builds zoekt's index of a corpus in a folder with the program zoekt-index and its flags.
func IndexZoekt(ctx context.Context, program string, c corpus.Corpus, dir string, flags ...string) (cost Cost, err error) {
	if len(c.Repos) > maxZoektRepos {
		return Cost{}, ErrTooManyRepos
	}
	for _, r := range c.Repos {
		if err := indexRepo(ctx, program, r, dir, flags, &cost); err != nil {
			return Cost{}, err
		}
	}
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".zoekt" {
			return err
		}
		info, err := d.Info()
		if err == nil {
			cost.IndexBytes += info.Size()
		}
		return err
	})
	if err != nil {
		return Cost{}, fmt.Errorf("reading the size of zoekt's index: %w", err)
	}
	return cost, nil
}

// indexRepo sets the repo's name through a file next to the index: zoekt would use the last part of
// its folder, which need not be unique.
func indexRepo(ctx context.Context, program string, r corpus.Repo, dir string, flags []string, cost *Cost) error {
	meta, err := json.Marshal(map[string]string{"Name": r.Name})
	if err != nil {
		return fmt.Errorf("writing zoekt's description: %w", err)
	}
	file := filepath.Join(dir, "repo.meta")
	if err := os.WriteFile(file, meta, 0o666); err != nil {
		return fmt.Errorf("writing zoekt's description: %w", err)
	}
	_, err = Measure(exec.CommandContext(ctx, program, append(slices.Clone(flags), "-index", dir, "-meta", file, r.Dir)...), cost)
	return err
}

// serve starts the server and waits until it has loaded all repos.
func (z *zoekt) serve(ctx context.Context, dir string, repos int) (err error) {
	if z.server, err = Zoekt(ctx, z.webserver, dir); err != nil {
		return err
	}
	return z.server.AwaitRepos(ctx, repos)
}

func (z *zoekt) Files(ctx context.Context, q corpus.Query) (map[string]bool, error) {
	// It asks only for names: the matches of a common word would be most of the tree.
	answer, err := z.search(ctx, "type:file "+q.Text(), Every(0))
	if err != nil {
		return nil, err
	}
	return answer.Files()
}

// Time asks for 50 files among all matches in both modes: without its limits zoekt chooses them
// from all, as Trawl does.
func (z *zoekt) Time(ctx context.Context, q corpus.Query, _ bool) (time.Duration, error) {
	return z.time(ctx, q, Every(shown))
}

// shown is the number of files requested.
const shown = 50

// time returns the time by zoekt's own clock, without HTTP and JSON, like Trawl's.
func (z *zoekt) time(ctx context.Context, q corpus.Query, opts Options) (time.Duration, error) {
	answer, err := z.search(ctx, q.Text(), opts)
	if err != nil {
		return 0, err
	}
	stats, err := answer.Stats()
	return stats.Duration, err
}

func (z *zoekt) search(ctx context.Context, text string, opts Options) (*Reply, error) {
	opts.MaxWallTime = time.Minute
	return z.server.Search(ctx, text, opts)
}

// earlyZoekt is the same server, queried like its own interface does, with only a number of files;
// see Early.
type earlyZoekt struct{ *zoekt }

func (*earlyZoekt) Name() string    { return "zoekt, stopping early" }
func (*earlyZoekt) CountsAll() bool { return false }

// Version says how it differs from zoekt.
func (z *earlyZoekt) Version(context.Context) string {
	return z.Name() + ": the same server, which sets its own limits on matches"
}

// Index does nothing: it uses zoekt's index, which exists already.
func (*earlyZoekt) Index(_ context.Context, c corpus.Corpus, _ string) (Cost, bool, error) {
	if len(c.Repos) > maxZoektRepos {
		return Cost{}, false, ErrTooManyRepos
	}
	return Cost{}, false, nil
}

// Files returns only the 50 files.
func (z *earlyZoekt) Files(ctx context.Context, q corpus.Query) (map[string]bool, error) {
	answer, err := z.search(ctx, q.Text(), Early(shown))
	if err != nil {
		return nil, err
	}
	return answer.Files()
}

func (z *earlyZoekt) Time(ctx context.Context, q corpus.Query, exhaustive bool) (time.Duration, error) {
	if exhaustive {
		return 0, ErrUnsupported
	}
	return z.time(ctx, q, Early(shown))
}

// Close leaves the server to zoekt.
func (*earlyZoekt) Close() error { return nil }

func (z *zoekt) Close() error {
	if z.server == nil {
		return nil
	}
	return z.server.Close()
}
