// Package peer drives the engines that are measured, so that they answer the same queries on the
// same files in the same run: ripgrep, codesearch and zoekt as commands, and `trawl up` and
// zoekt-webserver as servers. Each server is a process of its own on a loopback address. The same
// client queries both servers over zoekt's JSON interface, and the system reports their cost.
package peer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"time"

	"github.com/trawl-search/trawl/bench/corpus"
)

// ErrUnsupported is the error for a query that the peer cannot express.
var ErrUnsupported = errors.New("the peer cannot express this query")

// ErrTooManyRepos is the error for a corpus that a peer would take hours to index.
var ErrTooManyRepos = errors.New("the peer starts a program for each repo, and there are too many")

// Cost is the cost of indexing: the sum over all processes, and Peak in bytes for the largest one.
type Cost struct {
	CPU, Wall  time.Duration
	Peak       int64
	IndexBytes int64
}

// Peer is another engine.
type Peer interface {
	Name() string
	// Version is what the peer reports as its version.
	Version(ctx context.Context) string
	// Index prepares the peer for the corpus, with an index in the folder dir; ok is false for a
	// peer without an index. It must be called first, and once. ErrTooManyRepos means that the peer
	// cannot take part.
	Index(ctx context.Context, c corpus.Corpus, dir string) (cost Cost, ok bool, err error)
	// CountsAll is false for a peer that only looks for the best 50 files, and so does not take
	// part where every match is counted.
	CountsAll() bool
	// Files returns every file that the query matches, as repo and path.
	Files(ctx context.Context, q corpus.Query) (map[string]bool, error)
	// Time returns how long the query takes, with every match counted or, if the peer can do that,
	// with only the best 50 files found.
	Time(ctx context.Context, q corpus.Query, exhaustive bool) (time.Duration, error)
	// Close ends what Index started.
	Close() error
}

// Installed returns the installed peers. zoektBin is the folder of zoekt's programs; empty means
// the PATH.
func Installed(zoektBin string) []Peer {
	var peers []Peer
	if z := newZoekt(zoektBin); z != nil {
		peers = append(peers, z, &earlyZoekt{z})
	}
	if onPath("rg") {
		peers = append(peers, &ripgrep{})
	}
	if onPath("cindex") && onPath("csearch") {
		peers = append(peers, &codesearch{})
	}
	return peers
}

func onPath(name string) bool {
	_, err := exec.LookPath(name)
	return err == nil
}

// Measure runs a program to its end and adds its cost to cost. In the grep family, exit status 1
// with nothing on stderr means that nothing was found.
func Measure(cmd *exec.Cmd, cost *Cost) ([]byte, error) {
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	start := time.Now()
	err := cmd.Run()
	cost.Wall += time.Since(start)
	if cmd.ProcessState != nil {
		cost.CPU += cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
		cost.Peak = max(cost.Peak, peakMemory(cmd.ProcessState))
	}
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && exit.ExitCode() == 1 && stderr.Len() == 0 {
		err = nil
	}
	if err != nil {
		return nil, fmt.Errorf("running %s: %w: %s", cmd.Path, err, bytes.TrimSpace(stderr.Bytes()))
	}
	return stdout.Bytes(), nil
}

// names maps paths that a peer prints to the corpus's repos and paths.
type names []corpus.Repo

// parse reads one path per line. The repo is the one whose folder is a part of the path; no repo is
// inside another.
func (n names) parse(out []byte) map[string]bool {
	repos := make(map[string]string, len(n))
	for _, r := range n {
		repos[r.Dir] = r.Name
	}
	files := map[string]bool{}
	for line := range strings.Lines(string(out)) {
		line = strings.TrimSuffix(line, "\n")
		for end := strings.LastIndexByte(line, '/'); end > 0; end = strings.LastIndexByte(line[:end], '/') {
			if name, ok := repos[line[:end]]; ok {
				files[name+line[end:]] = true
				break
			}
		}
	}
	return files
}

func (n names) dirs() []string {
	dirs := make([]string, len(n))
	for i, r := range n {
		dirs[i] = r.Dir
	}
	return dirs
}

func firstLine(ctx context.Context, name string, args ...string) string {
	out, err := exec.CommandContext(ctx, name, args...).Output()
	if err != nil {
		return "unknown version"
	}
	line, _, _ := strings.Cut(string(out), "\n")
	return line
}
