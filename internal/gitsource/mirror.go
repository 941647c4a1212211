package gitsource

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/trawl-search/trawl/index/docstore"
	"github.com/trawl-search/trawl/internal/gitsource/origin"
)

// errNoSpace is the system's error for a full disk.
var errNoSpace error = syscall.ENOSPC

const (
	// watchEvery is the interval at which the size of a growing mirror is checked. Over
	// http the egress proxy enforces the limit at once.
	watchEvery = 250 * time.Millisecond
	// maxPacks bounds the packs of a mirror before it is repacked.
	maxPacks = 16
)

// refs are the references of a remote repository.
type refs struct {
	head    string // name of the default branch, if HEAD names one
	commits map[string]string
}

// listRefs lists the remote repository's branches, and HEAD if it is wanted.
func (s *session) listRefs(ctx context.Context, want []string) (refs, error) {
	r := refs{commits: make(map[string]string)}
	// With --heads the server need not send other references, which can be a hundred
	// times as many. It does not include HEAD.
	args := []string{"ls-remote", "--quiet", "--heads", "--", s.url}
	if len(want) == 0 || slices.Contains(want, "HEAD") {
		args = []string{"ls-remote", "--quiet", "--symref", "--", s.url, "HEAD", "refs/heads/*"}
	}
	out, err := s.remote(ctx, "", nil, nil, args...)
	if err != nil {
		return r, err
	}
	for line := range bytes.Lines(out) {
		value, name, ok := strings.Cut(strings.TrimSuffix(string(line), "\n"), "\t")
		target, symbolic := strings.CutPrefix(value, "ref: refs/heads/")
		switch {
		case !ok:
		case symbolic && name == "HEAD":
			r.head = target
		case !symbolic && hexOID(value):
			r.commits[strings.TrimPrefix(name, "refs/heads/")] = value
		}
	}
	if commit, ok := r.commits["HEAD"]; ok && r.head != "" {
		r.commits[r.head] = commit
	}
	return r, nil
}

func hexOID(s string) bool {
	return (len(s) == 40 || len(s) == 64) && strings.Trim(s, "0123456789abcdef") == ""
}

// maxBranches bounds the branches of one repo.
const maxBranches = 1024

// choose returns the wanted branches, those of one pattern in the order of their names.
func (r refs) choose(want []string) ([]docstore.Branch, error) {
	if len(want) == 0 {
		want = []string{"HEAD"}
	}
	if len(r.commits) == 0 {
		return nil, failure(Empty, nil, "the repository is empty: it has no commits")
	}
	var chosen []docstore.Branch
	for _, name := range want {
		names, err := r.named(name)
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			if !slices.ContainsFunc(chosen, func(b docstore.Branch) bool { return b.Name == name }) {
				chosen = append(chosen, docstore.Branch{Name: name, Commit: r.commits[name]})
			}
		}
	}
	switch {
	case len(chosen) == 0:
		return nil, failure(NoBranch, nil, fmt.Sprintf("the repository has no branch like %s", strings.Join(want, ", ")))
	case len(chosen) > maxBranches:
		return nil, failure(TooLarge, nil, fmt.Sprintf("%d branches are wanted; the limit is %d", len(chosen), maxBranches))
	}
	return chosen, nil
}

// named returns the branches that a wanted name or pattern selects.
func (r refs) named(want string) ([]string, error) {
	if strings.Contains(want, "*") {
		if err := origin.CheckBranchPattern(want); err != nil {
			return nil, err
		}
		names := slices.DeleteFunc(slices.Sorted(maps.Keys(r.commits)), func(name string) bool {
			return name == "HEAD" || !origin.MatchPattern(want, name) || origin.CheckBranch(name) != nil
		})
		return names, nil
	}
	name, err := r.one(want)
	return []string{name}, err
}

// one returns the branch of a name that is not a pattern.
func (r refs) one(name string) (string, error) {
	if err := origin.CheckBranch(name); err != nil {
		return "", err
	}
	_, ok := r.commits[name]
	if name == "HEAD" {
		name = r.head
	}
	switch {
	case !ok && name == r.head:
		return "", failure(NoBranch, nil, "the repository's default branch does not exist; name the branches to index")
	case !ok:
		return "", failure(NoBranch, nil, fmt.Sprintf("the repository has no branch %q", name))
	case name == "":
		return "", failure(NoBranch, nil, "the repository's HEAD is not on a branch; name the branches to index")
	}
	return name, origin.CheckBranch(name) // the remote chose the name of its default branch
}

// prepareMirror creates an empty bare repository, or cleans an existing one of the files
// of a killed run and of branches that are no longer wanted. An old branch can block a
// new one, as "a" blocks "a/b".
func (s *session) prepareMirror(ctx context.Context, mirror string, branches []docstore.Branch) error {
	if _, err := os.Stat(filepath.Join(mirror, "HEAD")); err == nil {
		if err := removeLeftovers(mirror); err != nil {
			return err
		}
		return s.dropBranches(ctx, mirror, branches)
	}
	format := "sha1"
	if len(branches) > 0 && len(branches[0].Commit) == 64 {
		format = "sha256"
	}
	if err := os.MkdirAll(mirror, 0o700); err != nil {
		return fmt.Errorf("create a copy of the repository: %w", err)
	}
	_, err := s.local(ctx, mirror, nil, "init", "--quiet", "--bare", "--template=", "--object-format="+format,
		"--initial-branch=trawl")
	return err
}

func (s *session) dropBranches(ctx context.Context, mirror string, wanted []docstore.Branch) error {
	have, err := s.heads(ctx, mirror)
	if err != nil {
		return err
	}
	for _, b := range wanted {
		delete(have, b.Name)
	}
	var drop strings.Builder
	for name := range have {
		fmt.Fprintf(&drop, "delete refs/heads/%s\n", name)
	}
	if drop.Len() == 0 {
		return nil
	}
	_, err = s.local(ctx, mirror, strings.NewReader(drop.String()), "update-ref", "--stdin")
	return err
}

func removeLeftovers(mirror string) error {
	return filepath.WalkDir(mirror, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if !d.IsDir() && (strings.HasSuffix(path, ".lock") || strings.HasPrefix(d.Name(), "tmp_")) {
			return os.Remove(path)
		}
		return nil
	})
}

// fetch fetches the newest commits of the branches into the mirror.
func (s *session) fetch(ctx context.Context, mirror string, branches []docstore.Branch, progress func(Progress)) error {
	var stdin strings.Builder
	for _, b := range branches {
		fmt.Fprintf(&stdin, "+refs/heads/%s:refs/heads/%s\n", b.Name, b.Name)
	}
	if err := s.fetchRefs(ctx, mirror, stdin.String(), progress); err != nil {
		return err
	}
	return s.repack(ctx, mirror)
}

// fetchRefs fetches the given refspecs, one a line.
func (s *session) fetchRefs(ctx context.Context, mirror, refspecs string, progress func(Progress)) error {
	stop := s.watchSize(ctx, mirror)
	_, err := s.remote(ctx, mirror, strings.NewReader(refspecs), func(line string) { s.onProgress(line, progress) },
		"--git-dir="+mirror, "fetch", "--progress", "--depth=1", "--no-tags", "--force", "--update-shallow", "--stdin",
		"--no-write-fetch-head", "--no-recurse-submodules", "--no-auto-maintenance", "--", s.url)
	stop()
	return err
}

func (s *session) onProgress(line string, progress func(Progress)) {
	p, ok := receiving(line)
	if !ok {
		return
	}
	if limit := s.fetcher.cfg.MaxObjects; p.Total > limit {
		s.exceeded(failure(TooLarge, nil, fmt.Sprintf("it has %d objects; the limit is %d", p.Total, limit)))
		return
	}
	if progress != nil {
		progress(p)
	}
}

// watchSize ends the session if the mirror exceeds the limit. The returned function
// stops watching.
func (s *session) watchSize(ctx context.Context, mirror string) func() {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(watchEvery)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			if err := s.fetcher.checkSize(mirror); err != nil {
				s.exceeded(err)
				return
			}
		}
	}()
	return func() { cancel(); <-done }
}

// checkSize fails for a mirror that exceeds the limit.
func (f *Fetcher) checkSize(mirror string) error {
	size, err := folderSize(mirror)
	if err == nil && size > int64(f.cfg.MaxBytes) {
		return tooManyBytes(int64(f.cfg.MaxBytes))
	}
	return err
}

// folderSize returns the size of the files below a folder. Files that vanish meanwhile
// do not count.
func folderSize(dir string) (int64, error) {
	var size int64
	err := filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			var info fs.FileInfo
			if info, err = d.Info(); err == nil {
				size += info.Size()
			}
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	})
	return size, err
}

// repack joins small packs once there are too many, in time that grows with their
// sizes. Once the other packs together are as large as the largest one, it rewrites
// everything, without objects that no branch reaches.
func (s *session) repack(ctx context.Context, mirror string) error {
	packs, err := filepath.Glob(filepath.Join(mirror, "objects", "pack", "*.pack"))
	if err != nil || len(packs) <= maxPacks {
		return err
	}
	how := "--geometric=2"
	if outgrown(packs) {
		how = "-a"
	}
	_, err = s.local(ctx, mirror, nil, "repack", how, "-d", "-q", "--threads=1")
	return err
}

// outgrown reports whether the largest file is no larger than the others together.
func outgrown(files []string) bool {
	var largest, sum int64
	for _, name := range files {
		if info, err := os.Stat(name); err == nil {
			largest, sum = max(largest, info.Size()), sum+info.Size()
		}
	}
	return 2*largest <= sum
}

// heads returns the commits of a mirror's branches.
func (s *session) heads(ctx context.Context, mirror string) (map[string]string, error) {
	out, err := s.local(ctx, mirror, nil,
		"for-each-ref", "--format=%(objectname)%09%(refname:lstrip=2)", "refs/heads")
	at := make(map[string]string)
	for line := range bytes.Lines(out) {
		commit, name, _ := strings.Cut(strings.TrimSuffix(string(line), "\n"), "\t")
		at[name] = commit
	}
	return at, err
}

// commits returns the branches with their commits in the mirror. They may have moved
// since listRefs.
func (s *session) commits(ctx context.Context, mirror string, branches []docstore.Branch) ([]docstore.Branch, error) {
	at, err := s.heads(ctx, mirror)
	if err != nil {
		return nil, err
	}
	fetched := slices.Clone(branches)
	for i, b := range branches {
		if fetched[i].Commit = at[b.Name]; fetched[i].Commit == "" {
			return nil, failure(Damaged, nil, fmt.Sprintf("branch %q did not arrive", b.Name))
		}
	}
	return fetched, nil
}
