package peer

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/trawl-search/trawl/bench/corpus"
)

// ripgrep reads the whole tree for each query.
type ripgrep struct{ repos names }

func (*ripgrep) Name() string                       { return "ripgrep" }
func (*ripgrep) Version(ctx context.Context) string { return firstLine(ctx, "rg", "--version") }
func (*ripgrep) Close() error                       { return nil }
func (*ripgrep) CountsAll() bool                    { return true }

func (p *ripgrep) Index(_ context.Context, c corpus.Corpus, _ string) (Cost, bool, error) {
	p.repos = c.Repos
	return Cost{}, false, nil
}

// byFolder reports whether the query chooses files by their folders. These two
// peers also see the folders above the corpus.
func byFolder(q corpus.Query) bool { return q.File != "" && q.Glob == "" }

// args returns the arguments to search every file that is not binary, including
// ignored and hidden ones, with classes of characters as in Go's regular
// expressions.
func (p *ripgrep) args(q corpus.Query, mode string) ([]string, error) {
	if len(q.Patterns) != 1 || byFolder(q) {
		return nil, ErrUnsupported
	}
	args := []string{"--no-config", "--no-ignore", "--hidden", "--no-messages", "--no-unicode", "--glob", "!.git", mode}
	if !q.CaseSensitive {
		args = append(args, "--ignore-case")
	}
	if q.Glob != "" {
		args = append(args, "--glob", q.Glob)
	}
	return append(append(args, "--regexp", q.Patterns[0], "--"), p.repos.dirs()...), nil
}

func (p *ripgrep) Files(ctx context.Context, q corpus.Query) (map[string]bool, error) {
	args, err := p.args(q, "--files-with-matches")
	if err != nil {
		return nil, err
	}
	out, err := Measure(exec.CommandContext(ctx, "rg", args...), &Cost{})
	return p.repos.parse(out), err
}

// Time counts matches if exhaustive. ripgrep has no notion of best files;
// finding the names of all matching files comes closest.
func (p *ripgrep) Time(ctx context.Context, q corpus.Query, exhaustive bool) (time.Duration, error) {
	mode := "--files-with-matches"
	if exhaustive {
		mode = "--count-matches"
	}
	args, err := p.args(q, mode)
	if err != nil {
		return 0, err
	}
	var cost Cost
	_, err = Measure(exec.CommandContext(ctx, "rg", args...), &cost)
	return cost.Wall, err
}

// codesearch has trigrams of whole files and reads the files themselves.
type codesearch struct {
	repos names
	index string
}

func (*codesearch) Name() string { return "codesearch" }
func (*codesearch) Version(ctx context.Context) string {
	return "codesearch " + firstLine(ctx, "dpkg-query", "--show", "--showformat=${Version}\n", "codesearch")
}
func (*codesearch) Close() error    { return nil }
func (*codesearch) CountsAll() bool { return true }

func (p *codesearch) command(ctx context.Context, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = append(os.Environ(), "CSEARCHINDEX="+p.index)
	return cmd
}

func (p *codesearch) Index(ctx context.Context, c corpus.Corpus, dir string) (cost Cost, ok bool, err error) {
	p.repos, p.index = c.Repos, filepath.Join(dir, "codesearch.index")
	if _, err := Measure(p.command(ctx, "cindex", p.repos.dirs()...), &cost); err != nil {
		return Cost{}, true, err
	}
	info, err := os.Stat(p.index)
	if err != nil {
		return Cost{}, true, fmt.Errorf("reading the size of the index: %w", err)
	}
	cost.IndexBytes = info.Size()
	return cost, true, nil
}

func (p *codesearch) args(q corpus.Query, mode string) ([]string, error) {
	if len(q.Patterns) != 1 || byFolder(q) {
		return nil, ErrUnsupported
	}
	args := []string{mode}
	if !q.CaseSensitive {
		args = append(args, "-i")
	}
	if q.File != "" {
		args = append(args, "-f", q.File)
	}
	return append(args, q.Patterns[0]), nil
}

func (p *codesearch) Files(ctx context.Context, q corpus.Query) (map[string]bool, error) {
	args, err := p.args(q, "-l")
	if err != nil {
		return nil, err
	}
	out, err := Measure(p.command(ctx, "csearch", args...), &Cost{})
	return p.repos.parse(out), err
}

// Time counts matching lines if exhaustive, and otherwise lists the names.
func (p *codesearch) Time(ctx context.Context, q corpus.Query, exhaustive bool) (time.Duration, error) {
	mode := "-l"
	if exhaustive {
		mode = "-c"
	}
	args, err := p.args(q, mode)
	if err != nil {
		return 0, err
	}
	var cost Cost
	_, err = Measure(p.command(ctx, "csearch", args...), &cost)
	return cost.Wall, err
}
