package ignore

import (
	"os"
	"path/filepath"
	"strings"
)

// RuleFiles are the names of the files with rules in a folder, in the order of precedence.
var RuleFiles = []string{".rgignore", ".ignore", ".gitignore"}

// Options choose the rules that count.
type Options struct {
	// Hidden includes files whose names begin with a dot.
	Hidden bool
	// NoRules ignores all files with rules.
	NoRules bool
	// Globs precede all rules. They match paths from the working directory, and may be nil.
	Globs *Globs
	// GlobalGit is the path of the file with rules for all Git repositories, "" if there is none.
	GlobalGit string
}

// Tree holds the rules that apply in a folder.
type Tree struct {
	opts   *Options
	global *Rules
	parent *Tree
	dir    string // absolute
	files  [3]*Rules
	// exclude holds the rules of .git/info/exclude, if the folder has a repository.
	exclude *Rules
	hasGit  bool
	anyGit  bool // here or above
}

// Root reads the rules of a folder, an absolute path, and of those above it.
func Root(dir string, opts *Options) *Tree {
	var parent *Tree
	if up := filepath.Dir(dir); up != dir {
		parent = Root(up, opts)
	} else {
		parent = &Tree{opts: opts}
		if !opts.NoRules {
			parent.global = read(opts.GlobalGit)
		}
	}
	return parent.Below(dir)
}

// Below reads the rules of a folder that is in the folder of t.
func (t *Tree) Below(dir string) *Tree {
	below := &Tree{opts: t.opts, global: t.global, parent: t, dir: dir, anyGit: t.anyGit}
	if t.opts.NoRules {
		return below
	}
	for i, name := range RuleFiles {
		below.files[i] = read(filepath.Join(dir, name))
	}
	if exclude, ok := ExcludeFile(dir); ok {
		below.hasGit, below.anyGit = true, true
		below.exclude = read(exclude)
	}
	return below
}

// ExcludeFile is the path of the exclude file of the Git repository whose files are in dir; not ok if
// there is no repository.
func ExcludeFile(dir string) (path string, ok bool) {
	git := filepath.Join(dir, ".git")
	info, err := os.Stat(git)
	if err != nil {
		return "", false
	}
	if !info.IsDir() { // the .git of a worktree or a submodule names another folder
		content := contentOf(git)
		if content == nil {
			return "", true
		}
		to, _ := strings.CutPrefix(strings.TrimSpace(string(content)), "gitdir: ")
		git = joined(dir, to)
		if common := contentOf(filepath.Join(git, "commondir")); common != nil {
			git = joined(git, strings.TrimSpace(string(common)))
		}
	}
	return filepath.Join(git, "info", "exclude"), true
}

// joined is path as seen from dir.
func joined(dir, path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(dir, path)
}

// read parses a file. An unreadable file has no rules.
func read(path string) *Rules {
	if content := contentOf(path); content != nil {
		return Parse(content)
	}
	return nil
}

// maxFile bounds a file that is read, in bytes.
const maxFile = 16 << 20

// contentOf is the content of a file, nil if it cannot be read. A folder may have anything in the place of such a file: pipes and devices
// might have no end.
func contentOf(path string) []byte {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() || info.Size() > maxFile {
		return nil
	}
	content, err := os.ReadFile(path)
	if err != nil {
		return nil
	}
	return content
}

// PassesOver reports whether the search skips an entry of the folder, with everything in it. Path is the
// entry's path from the working directory, for Options.Globs.
func (t *Tree) PassesOver(name, path string, isDir bool) bool {
	if d := t.opts.Globs.Match(path, isDir); d != None {
		return d == Ignore
	}
	switch t.decide(filepath.Join(t.dir, name), isDir) {
	case Ignore:
		return true
	case Include:
		return false
	}
	return !t.opts.Hidden && strings.HasPrefix(name, ".")
}

// decide applies the rules: the kind of the rule file takes precedence over the depth of its folder, and of
// Git's rules only those of the innermost repository count.
func (t *Tree) decide(path string, isDir bool) Decision {
	if t.opts.NoRules {
		return None
	}
	var found [3]Decision
	exclude, sawGit := None, false
	for f := t; f.dir != ""; f = f.parent {
		relative := strings.TrimPrefix(path[len(f.dir):], "/")
		for i, rules := range f.files {
			if RuleFiles[i] == ".gitignore" && (sawGit || !t.anyGit) {
				continue
			}
			if found[i] == None {
				found[i] = rules.Match(relative, isDir)
			}
		}
		if exclude == None && !sawGit && t.anyGit {
			exclude = f.exclude.Match(relative, isDir)
		}
		if f.hasGit && !sawGit {
			sawGit = true
			found[2] = first(found[2], exclude, t.global.Match(relative, isDir))
		}
	}
	return first(found[:]...)
}

func first(decisions ...Decision) Decision {
	for _, d := range decisions {
		if d != None {
			return d
		}
	}
	return None
}

// GlobalGit is the path of the file with rules for all of a user's Git repositories: the core.excludesFile
// of Git's configuration, or git/ignore in its folder.
func GlobalGit(home, configHome string) string {
	if configHome == "" && home != "" {
		configHome = filepath.Join(home, ".config")
	}
	for _, config := range []string{filepath.Join(home, ".gitconfig"), filepath.Join(configHome, "git", "config")} {
		content, err := os.ReadFile(config)
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(content)) {
			key, value, ok := strings.Cut(line, "=")
			if !ok || !strings.EqualFold(strings.TrimSpace(key), "excludesfile") {
				continue
			}
			value = strings.Trim(strings.TrimSpace(value), `"`)
			if rest, ok := strings.CutPrefix(value, "~/"); ok {
				value = filepath.Join(home, rest)
			}
			return value
		}
	}
	if configHome == "" {
		return ""
	}
	return filepath.Join(configHome, "git", "ignore")
}
