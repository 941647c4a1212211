// Package peer drives the engines that are measured, so that they answer the same
// queries on the same files in the same run: ripgrep, codesearch and zoekt as
// commands, and `trawl up` and zoekt-webserver as servers. Each server is a process
// of its own on a loopback address. Both are asked over zoekt's JSON interface by the
// same client, and their cost is read from the system.
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

// ErrUnsupported is the error of a query that the peer has no words for.
var ErrUnsupported = errors.New("the peer cannot express this query")

// ErrTooManyRepos is the error of a corpus that would take a peer hours to index.
var ErrTooManyRepos = errors.New("the peer starts a program for each repo, and there are too many")

// Cost is what indexing took: of all its processes together, Peak of the
// largest in bytes.
type Cost struct {
	CPU, Wall  time.Duration
	Peak       int64
	IndexBytes int64
}

// Peer is another engine.
type Peer interface {
	Name() string
	// Version is what the peer says of itself.
	Version(ctx context.Context) string
	// Index makes the peer ready for the corpus with an index in the folder dir;
	// ok is false for a peer that has no index of its own. It must be called
	// once, first. ErrTooManyRepos means that the peer cannot take part.
	Index(ctx context.Context, c corpus.Corpus, dir string) (cost Cost, ok bool, err error)
	// CountsAll is false for a peer that only ever looks for the best 50 files,
	// and so takes no part where every match is counted.
	CountsAll() bool
	// Files answers every file that the query matches, as repo and path.
	Files(ctx context.Context, q corpus.Query) (map[string]bool, error)
	// Time answers how long the query takes: with every match counted, or only
	// the best 50 files looked for, where the peer knows that.
	Time(ctx context.Context, q corpus.Query, exhaustive bool) (time.Duration, error)
	// Close ends what Index started.
	Close() error
}

// Installed lists the peers that are there. zoektBin is the folder of zoekt's
// programs; empty means the PATH.
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

// Measure runs a program to its end and adds what it took to cost. Exit
// status 1 without a word on stderr is how the grep family says "nothing found".
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

// parse reads one path on each line. The repo is the one whose folder is a
// part of the path; no repo lies in another.
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
