package gitsource

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/trawl-search/trawl/internal/gitsource/gitsourcetest"
	"github.com/trawl-search/trawl/internal/gitsource/origin"
	"github.com/trawl-search/trawl/internal/sandbox"
	"github.com/trawl-search/trawl/internal/testrun"
)

// TestLinksAreFollowedWithinBounds: a check of links ends with the job that it is for, and at a number of links.
func TestLinksAreFollowedWithinBounds(t *testing.T) {
	r := gitsourcetest.New(t)
	r.Files("main", "a", "text")
	dir, err := filepath.EvalSymlinks(r.Dir)
	must(t, err)
	check := func(ctx context.Context) error {
		local := localRepo{ctx: ctx, policy: origin.Policy{Folders: []string{dir}}, stores: map[string]bool{}}
		_, err := local.gitDir(dir)
		return err
	}
	must(t, check(t.Context()))
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := check(ended); !errors.Is(err, context.Canceled) {
		t.Errorf("after the end of its job: %v", err)
	}
	for i := range maxFolders {
		must(t, os.Symlink("main", filepath.Join(dir, ".git/refs/heads", strconv.Itoa(i))))
	}
	wantFailure(t, check(t.Context()), Refused, "too many places")
}

// TestNothingLeadsOutOfAllowedFolders: each way to make git read a folder other than the
// repository's is refused if it leads out of the allowed folders, and works within them.
func TestNothingLeadsOutOfAllowedFolders(t *testing.T) {
	ways := map[string]func(t *testing.T, dir, other string){
		"a file .git": func(t *testing.T, dir, other string) {
			write(t, dir, ".git", "gitdir: "+other+"/.git\n")
		},
		"a relative file .git": func(t *testing.T, dir, other string) {
			rel, err := filepath.Rel(dir, other)
			must(t, err)
			write(t, dir, ".git", "gitdir: "+rel+"/.git\n")
		},
		"a link .git":  func(t *testing.T, dir, other string) { must(t, os.Symlink(other+"/.git", dir+"/.git")) },
		"linked files": func(t *testing.T, dir, other string) { bare(t, dir, other, true) },
		"alternates": func(t *testing.T, dir, other string) {
			bare(t, dir, other, false)
			write(t, dir, "objects/info/alternates", "# borrowed\n"+other+"/.git/objects\n")
		},
		"a common folder": func(t *testing.T, dir, other string) {
			write(t, dir, ".git/HEAD", "ref: refs/heads/main\n")
			write(t, dir, ".git/commondir", other+"/.git\n")
		},
	}
	for what, lead := range ways {
		t.Run(what, func(t *testing.T) {
			r := gitsourcetest.New(t)
			r.Files("main", "a", "theirs")
			root, err := filepath.EvalSymlinks(t.TempDir())
			must(t, err)
			theirs, err := filepath.EvalSymlinks(r.Dir)
			must(t, err)
			dir := filepath.Join(root, "mine")
			must(t, os.Mkdir(dir, 0o755))
			lead(t, dir, theirs)
			within := newFetcher(t, func(c *FetchConfig) { c.Folders = []string{root, theirs} })
			if got := fetchAll(t, within, filepath.Join(t.TempDir(), "m"), dir); got["a@main"] != "theirs" {
				t.Errorf("within the allowed folders: %v", got)
			}
			_, err = newFetcher(t, func(c *FetchConfig) { c.Folders = []string{root} }).Branches(t.Context(), dir, nil)
			wantFailure(t, err, Refused, string(origin.RuleFolder))
			if fail := (*Failure)(nil); errors.As(err, &fail) && strings.Contains(fail.Reason, theirs) {
				t.Errorf("the error shows where it leads: %v", err)
			}
		})
	}
}

// TestConfigurationIncludesFiles: git reads the files that a repository's configuration includes, as far as they are in allowed
// folders. One outside that is included on a condition that does not hold is nothing to git.
func TestConfigurationIncludesFiles(t *testing.T) {
	if err := sandbox.Support(); err != nil {
		t.Skip(err)
	}
	r, other := gitsourcetest.New(t), t.TempDir()
	r.Files("main", "a", "1")
	write(t, r.Dir, ".gitconfig", "[include] path = ../hooks # and more\n")
	write(t, filepath.Dir(r.Dir), "hooks", "[include]\n\tpath = \""+other+"/with space\"\n")
	write(t, other, "with space", "[core]\n\tabbrev = 7\n")
	r.Git("config", "include.path", "../.gitconfig")
	r.Git("config", "extensions.worktreeConfig", "true")
	r.Git("config", "--worktree", "include.path", other+"/none")
	within := newFetcher(t, func(c *FetchConfig) { c.Folders = []string{filepath.Dir(r.Dir), other} })
	if got := fetchAll(t, within, filepath.Join(t.TempDir(), "m"), r.Dir); got["a@main"] != "1" {
		t.Errorf("within the allowed folders: %v", got)
	}
	if got := openRepository(t, r.Dir, Limits{}).Total(); got != 1 {
		t.Errorf("opened: %d documents", got)
	}
	alone := newFetcher(t, func(c *FetchConfig) { c.Folders = []string{filepath.Dir(r.Dir)} })
	_, err := alone.Branches(t.Context(), r.Dir, nil)
	wantFailure(t, err, Refused, "includes")
	r.Git("config", "--unset", "include.path")
	r.Git("config", "includeIf.gitdir:/elsewhere/.path", other+"/with space")
	if branches, err := alone.Branches(t.Context(), r.Dir, nil); err != nil || len(branches) != 1 {
		t.Errorf("on a condition that does not hold: %v, %v", branches, err)
	}
	must(t, syscall.Mkfifo(filepath.Join(r.Dir, "pipe"), 0o600))
	r.Git("config", "include.path", "../pipe")
	_, err = within.Branches(t.Context(), r.Dir, nil)
	wantFailure(t, err, Refused, "includes") // git would wait for who writes to it
}

// TestOnlyIncludesAreFollowed: of the keys named path only those of include and includeIf name files that git reads.
func TestOnlyIncludesAreFollowed(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	var config strings.Builder
	for i := range 2 * maxIncludes {
		config.WriteString("[mergetool \"m" + strconv.Itoa(i) + "\"]\n\tcmd = x\n\tpath = tool\n")
	}
	config.WriteString(`[include] path = a # and more
	path=b
[INCLUDEIF "gitdir:\"]/x/"]
	; path = tool
	key = value
	Path = "c"
[includeIf "onbranch:main"] # [mergetool]
	path = d ; and more
[core]
	path = tool
[submodule "include"] path = tool
	path = tool
`)
	write(t, dir, "config", config.String())
	for _, name := range []string{"a", "b", "c", "d", "tool"} {
		write(t, dir, name, "")
	}
	local := localRepo{ctx: t.Context(), policy: origin.Policy{Folders: []string{dir}}, stores: map[string]bool{}}
	local.includes(filepath.Join(dir, "config"))
	if got, want := strings.Join(local.folders, " "), strings.ReplaceAll("D/a D/b D/c D/d", "D", dir); got != want {
		t.Errorf("git may read %s, want %s", got, want)
	}
}

// TestFoldersEndWithTheirContext: the object stores of a repository are not walked for a caller who has left.
func TestFoldersEndWithTheirContext(t *testing.T) {
	r := gitsourcetest.New(t)
	ctx, cancel := context.WithCancel(t.Context())
	whole := foldersOf(ctx, r.Dir)
	cancel()
	if got := foldersOf(ctx, r.Dir); len(got) >= len(whole) {
		t.Errorf("folders %q, with time %q", got, whole)
	}
}

// TestOnlyPlainFiles: a pipe or a folder where git looks for a file of a local repository is named at once. git would wait for who writes
// to a pipe.
func TestOnlyPlainFiles(t *testing.T) {
	pipe := func(path string) error { return syscall.Mkfifo(path, 0o600) }
	folder := func(path string) error { return os.Mkdir(path, 0o755) }
	linked := func(path string) error { return errors.Join(pipe(path+".pipe"), os.Symlink(path+".pipe", path)) }
	for what, c := range map[string]struct {
		put   func(path string) error
		names []string
	}{
		"pipe": {pipe, []string{
			"HEAD", "config", "packed-refs", "shallow", "commondir", "objects", "objects/info/alternates", "objects/pack/pack-x.idx", "refs/heads/x",
		}},
		"folder": {folder, []string{"HEAD", "config", "packed-refs", "shallow", "commondir", "objects/info/alternates"}},
		"link":   {linked, []string{"HEAD", "refs/heads/x"}},
	} {
		for _, name := range c.names {
			r := gitsourcetest.New(t)
			r.Files("main", "a", "1")
			path := filepath.Join(r.Dir, ".git", name)
			must(t, errors.Join(os.RemoveAll(path), os.MkdirAll(filepath.Dir(path), 0o755)))
			must(t, c.put(path))
			t.Logf("%s at %s", what, name)
			_, err := newFetcher(t, func(cfg *FetchConfig) { local(r)(cfg); cfg.Timeout = time.Minute }).Branches(t.Context(), r.Dir, nil)
			wantFailure(t, err, Refused, "plain file")
		}
	}
}

// TestNewerFormat: a repository that this git cannot read needs another git, and no further attempt.
func TestNewerFormat(t *testing.T) {
	r := gitsourcetest.New(t)
	r.Files("main", "a", "1")
	config := filepath.Join(r.Dir, ".git", "config")
	text, err := os.ReadFile(config)
	must(t, err)
	for _, format := range []string{"repositoryformatversion = 1\n[extensions]\n\tunheardOf = x\n", "repositoryformatversion = 99\n"} {
		must(t, os.WriteFile(config, []byte(strings.Replace(string(text), "repositoryformatversion = 0\n", "", 1)+"[core]\n\t"+format), 0o600))
		_, err = newFetcher(t, local(r)).Branches(t.Context(), r.Dir, nil)
		wantFailure(t, err, Refused, "newer git")
		_, err = OpenRepository(t.Context(), r.Dir, nil, Limits{})
		wantFailure(t, err, Refused, "newer git")
	}
}

// bare makes a bare repository with the branches of another one, and with links to its objects or none.
func bare(t *testing.T, dir, other string, linked bool) {
	t.Helper()
	commit, err := os.ReadFile(other + "/.git/refs/heads/main")
	must(t, err)
	write(t, dir, "HEAD", "ref: refs/heads/main\n")
	write(t, dir, "refs/heads/main", string(commit))
	if !linked {
		return
	}
	must(t, os.Mkdir(dir+"/objects", 0o755))
	folders, err := filepath.Glob(other + "/.git/objects/*")
	must(t, err)
	for _, f := range folders {
		must(t, os.Symlink(f, filepath.Join(dir, "objects", filepath.Base(f))))
	}
}

var must = testrun.Must
