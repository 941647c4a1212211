package gitsource

import (
	"cmp"
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
	"github.com/trawl-search/trawl/internal/lazyregexp"
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
	return initBare(mirror, branches)
}

// initBare creates an empty bare repository for the branches. It has what git init writes without a template, and needs
// no start of git, of which a small repo has few others.
func initBare(dir string, branches []docstore.Branch) error {
	config := "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = true\n"
	if len(branches) > 0 && len(branches[0].Commit) == 64 {
		config = "[core]\n\trepositoryformatversion = 1\n\tfilemode = true\n\tbare = true\n[extensions]\n\tobjectformat = sha256\n"
	}
	err := errors.Join(os.MkdirAll(filepath.Join(dir, "objects"), 0o700), os.MkdirAll(filepath.Join(dir, "refs"), 0o700),
		os.WriteFile(filepath.Join(dir, "config"), []byte(config), 0o600))
	if err == nil { // last: a mirror with this file is complete
		err = os.WriteFile(filepath.Join(dir, "HEAD"), []byte("ref: refs/heads/trawl\n"), 0o600)
	}
	if err != nil {
		return fmt.Errorf("create a copy of the repository: %w", err)
	}
	return nil
}

func (s *session) dropBranches(ctx context.Context, mirror string, wanted []docstore.Branch) error {
	have, err := s.local(ctx, mirror, nil, "for-each-ref", "--format=%(refname)")
	if err != nil {
		return err
	}
	drop := make(map[string]bool)
	for ref := range strings.Lines(string(have)) {
		drop[strings.TrimSuffix(ref, "\n")] = !strings.HasPrefix(ref, submoduleRefs)
	}
	for _, b := range wanted {
		delete(drop, mirrorRef(b.Name))
	}
	var stdin strings.Builder
	for ref, unwanted := range drop {
		if unwanted {
			fmt.Fprintf(&stdin, "delete %s\n", ref)
		}
	}
	if stdin.Len() == 0 {
		return nil
	}
	_, err = s.local(ctx, mirror, strings.NewReader(stdin.String()), "update-ref", "--stdin")
	return err
}

// mirrorRef returns the ref of a branch in a mirror. It is that of the remote repository, except
// for a HEAD that names no branch, since git does not fetch into HEAD.
func mirrorRef(name string) string {
	if name == "HEAD" {
		return "refs/HEAD"
	}
	return origin.BranchRef(name)
}

// removeLeftovers removes what a killed run of git left: locks, and files and folders with temporary
// names. Below refs only locks are left; branches have names of all kinds.
func removeLeftovers(mirror string) error {
	refs := filepath.Join(mirror, "refs") + string(filepath.Separator)
	return filepath.WalkDir(mirror, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case !d.IsDir() && strings.HasSuffix(path, ".lock"):
			return os.Remove(path)
		case strings.HasPrefix(path, refs) || !strings.HasPrefix(d.Name(), "tmp_"):
			return nil
		case d.IsDir():
			return cmp.Or(os.RemoveAll(path), fs.SkipDir)
		}
		return os.Remove(path)
	})
}

// fetch fetches the newest commits of the branches into the mirror, and returns those that it fetched; see without.
func (s *session) fetch(ctx context.Context, mirror string, branches []docstore.Branch, progress func(Progress)) ([]docstore.Branch, error) {
	for round := 0; ; round++ {
		err := s.fetchBranches(ctx, mirror, branches, progress)
		if err == nil {
			return branches, s.repack(ctx, mirror)
		}
		rest := s.without(ctx, branches, err)
		if rest == nil || round == brokenRounds {
			return nil, err
		}
		branches = rest
	}
}

// brokenRounds bounds how often a fetch is repeated without branches that cannot be fetched. git names all that are no commits at once, but
// only one whose object is missing.
const brokenRounds = 8

// fetchBranches fetches branches, all of them or none.
func (s *session) fetchBranches(ctx context.Context, mirror string, branches []docstore.Branch, progress func(Progress)) error {
	var refs, copied strings.Builder
	for _, b := range branches {
		ref := mirrorRef(b.Name)
		fmt.Fprintf(&refs, "+%s:%s\n", origin.BranchRef(b.Name), ref)
		fmt.Fprintf(&copied, "+%s:%[1]s\n", ref)
	}
	err := s.fetchRefs(ctx, mirror, s.url, refs.String(), progress, "--depth=1")
	if !hasReason(err, notShallowReason) {
		return err
	}
	// The history comes first, then the mirror fetches the newest commits from it as from any server, with
	// all checks: git checks nothing that comes from a server of plain files.
	history := filepath.Join(mirror, "tmp_history")
	if err := errors.Join(os.RemoveAll(history), initBare(history, branches)); err != nil {
		return err
	}
	if err = s.fetchRefs(ctx, history, s.url, refs.String(), nil); err == nil {
		err = s.fetchRefs(ctx, mirror, history, copied.String(), progress, "--depth=1")
	}
	return errors.Join(err, os.RemoveAll(history))
}

// noCommit is the end of git's messages about a ref that names an object that the repository does not have, or one that is no commit.
var noCommit = lazyregexp.New(`(?:not our ref|trying to write non-commit object) ([0-9a-f]{40,64})`)

// without returns the branches without those that a fetch failed for, since what they name is no commit, so that the others can be fetched.
// It returns nil if a branch may have moved meanwhile, and for the first branch: no other one may stand for it.
func (s *session) without(ctx context.Context, branches []docstore.Branch, err error) (rest []docstore.Branch) {
	fail, ok := errors.AsType[*Failure](err)
	if !ok || slices.Contains(fail.objects, branches[0].Commit) {
		return nil
	}
	broken := map[string]string{}
	for _, b := range branches {
		if slices.Contains(fail.objects, b.Commit) {
			broken[b.Name] = b.Commit
		} else {
			rest = append(rest, b)
		}
	}
	if len(broken) == 0 {
		return nil
	}
	now, err := s.listRefs(ctx, slices.Collect(maps.Keys(broken)))
	if err != nil {
		return nil
	}
	for name, commit := range broken {
		if now.commits[origin.BranchRef(name)] != commit {
			return nil
		}
	}
	return rest
}

// fetchRefs fetches the given refspecs, one a line, from the remote repository or from one that this
// session made.
func (s *session) fetchRefs(ctx context.Context, mirror, from, refspecs string, progress func(Progress), options ...string) error {
	args := []string{"--git-dir=" + mirror}
	if from != s.url {
		args = append(args, "-c", "protocol.file.allow=always")
	}
	args = append(args, "fetch", "--progress", "--no-tags", "--force", "--update-shallow", "--stdin", "--no-write-fetch-head",
		"--no-recurse-submodules", "--no-auto-maintenance")
	args = append(append(args, options...), "--", from)
	_, err := s.remote(ctx, mirror, strings.NewReader(refspecs), func(line string) { s.onProgress(line, progress) }, args...)
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
	if _, err = s.local(ctx, mirror, nil, "repack", how, "-d", "-q", "--threads=1"); err != nil {
		return err
	}
	return s.pruneShallow(ctx, mirror)
}

// pruneShallow reduces the mirror's list of commits without history to those that refs name. Git itself keeps a commit there for as
// long as the mirror has the object, and sends the whole list at each fetch: after 20,000 pushes that is a megabyte.
func (s *session) pruneShallow(ctx context.Context, mirror string) error {
	out, err := s.local(ctx, mirror, nil, "rev-list", "--no-walk", "--all")
	if err != nil {
		return err
	}
	named := make(map[string]bool)
	for commit := range strings.Lines(string(out)) {
		named[commit] = true
	}
	file := filepath.Join(mirror, "shallow")
	list, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // all commits are without history by themselves
	}
	if err != nil {
		return err
	}
	var kept strings.Builder
	for commit := range strings.Lines(string(list)) {
		if named[commit] {
			kept.WriteString(commit)
		}
	}
	half := filepath.Join(mirror, "tmp_shallow")
	if err := os.WriteFile(half, []byte(kept.String()), 0o600); err != nil {
		return err
	}
	return os.Rename(half, file)
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

// commits returns the branches with their commits in the mirror. They may have moved
// since listRefs. A tag of a folder counts as a commit of it, and one of a single
// file, which patterns may select, is left out unless nothing else is left.
func (s *session) commits(ctx context.Context, mirror string, branches []docstore.Branch) ([]docstore.Branch, error) {
	if fetched := loose(mirror, branches); fetched != nil {
		return fetched, nil
	}
	var stdin strings.Builder
	for _, b := range branches {
		fmt.Fprintf(&stdin, "%s^{}\n", mirrorRef(b.Name))
	}
	out, err := s.local(ctx, mirror, strings.NewReader(stdin.String()), "cat-file", "--buffer", "--batch-check=%(objectname) %(objecttype)")
	if err != nil {
		return nil, err
	}
	lines := strings.Split(string(out), "\n")
	var fetched []docstore.Branch
	for i, b := range branches {
		commit, kind, _ := strings.Cut(lines[i], " ")
		if !hexOID(commit) {
			return nil, failure(Damaged, nil, fmt.Sprintf("branch %q did not arrive", b.Name))
		}
		if kind != "blob" {
			fetched = append(fetched, docstore.Branch{Name: b.Name, Commit: commit})
		}
	}
	if len(fetched) == 0 {
		return nil, failure(NoBranch, nil, fmt.Sprintf("%s is a single file; name the tags that are commits", branches[0].Name))
	}
	return fetched, nil
}

// loose reads the commits of branches from the files that a fetch writes, without a start of git. It returns nil if there
// are not only such files, or other refs: git lets a branch name nothing but a commit.
func loose(mirror string, branches []docstore.Branch) []docstore.Branch {
	fetched := slices.Clone(branches)
	for i, b := range branches {
		ref := mirrorRef(b.Name)
		text, err := os.ReadFile(filepath.Join(mirror, ref))
		if fetched[i].Commit = strings.TrimSpace(string(text)); err != nil || !strings.HasPrefix(ref, "refs/heads/") || !hexOID(fetched[i].Commit) {
			return nil
		}
	}
	return fetched
}
