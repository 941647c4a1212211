package ignore_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/trawl-search/trawl/internal/grep/ignore"
)

// randomTree makes folders with files and rules in a Git repository. Rules of .ignore are made only if asked for.
func randomTree(t *testing.T, rng *rand.Rand, dotIgnore bool) string {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), "git", "init", "-q", root).CombinedOutput(); err != nil {
		t.Fatalf("git init: %v: %s", err, out)
	}
	pick := func(of ...string) string { return of[rng.IntN(len(of))] }
	name := func() string { return pick("a", "b", "ab", "a.c", "b.h", ".d", "c.c", "x y", "a[b", "foo.log") }
	dirs := []string{""}
	write := func(path, content string) {
		if err := os.WriteFile(filepath.Join(root, path), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for range 6 {
		dir := filepath.Join(pick(dirs...), "d"+pick("", "1", ".c", "a"))
		if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
		dirs = append(dirs, dir)
	}
	for range 25 {
		write(filepath.Join(pick(dirs...), name()), "x\n")
	}
	rules := func() string {
		var b strings.Builder
		for range 1 + rng.IntN(4) {
			line := pick("", "", "!", "/") + pick("", "", "", "**/", "d/", "*/", "d*/", "d/**/") +
				pick("a", "*.c", "?", "*", "d", "d1", "a*", "[ab]", "[!a]*", `\!a`, "#a", "**", "*.log", "a.?", "x y", `a\[b`, "d.c", ".d", "[a-b].h") + pick("", "", "", "/", "/**")
			b.WriteString(line + pick("\n", "\n", "\r\n", " \n"))
		}
		return b.String()
	}
	for range 3 {
		write(filepath.Join(pick(dirs...), ".gitignore"), rules())
		if dotIgnore {
			write(filepath.Join(pick(dirs...), pick(".ignore", ".rgignore")), rules())
		}
	}
	write(".git/info/exclude", rules())
	return root
}

// files are the paths that are searched.
func files(t *testing.T, root string, opts *ignore.Options) []string {
	t.Helper()
	var found []string
	var walk func(tree *ignore.Tree, dir string)
	walk = func(tree *ignore.Tree, dir string) {
		entries, err := os.ReadDir(filepath.Join(root, dir))
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			path := filepath.Join(dir, e.Name())
			if e.Name() == ".git" || tree.PassesOver(e.Name(), path, e.IsDir()) {
				continue
			}
			if e.IsDir() {
				walk(tree.Below(filepath.Join(root, path)), path)
				continue
			}
			found = append(found, path)
		}
	}
	walk(ignore.Root(root, opts), "")
	slices.Sort(found)
	return found
}

// listed runs a command that lists files.
func listed(t *testing.T, root, name string, args ...string) []string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir = root
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + root, "GIT_CONFIG_NOSYSTEM=1"}
	out, err := cmd.Output()
	if err != nil && len(out) > 0 {
		t.Fatalf("%s %q: %v", name, args, err)
	}
	var paths []string
	for path := range bytes.SplitSeq(out, []byte{0}) {
		if len(path) > 0 {
			paths = append(paths, string(path))
		}
	}
	slices.Sort(paths)
	return paths
}

func compare(t *testing.T, seed uint64, root string, got, want []string) {
	t.Helper()
	if slices.Equal(got, want) {
		return
	}
	var rules strings.Builder
	_ = filepath.WalkDir(root, func(path string, d os.DirEntry, _ error) error {
		if strings.HasSuffix(path, "ignore") || strings.HasSuffix(path, "info/exclude") {
			content, _ := os.ReadFile(path)
			fmt.Fprintf(&rules, "%s: %q\n", path[len(root):], content)
		}
		return nil
	})
	extra := slices.DeleteFunc(slices.Clone(got), func(s string) bool { return slices.Contains(want, s) })
	missing := slices.DeleteFunc(slices.Clone(want), func(s string) bool { return slices.Contains(got, s) })
	t.Errorf("seed %d: too many %q, too few %q, with\n%s", seed, extra, missing, rules.String())
}

func TestFilesOfGit(t *testing.T) {
	for seed := range uint64(12) {
		root := randomTree(t, rand.New(rand.NewPCG(seed, 1)), false)
		got := files(t, root, &ignore.Options{Hidden: true})
		compare(t, seed, root, got, listed(t, root, "git", "ls-files", "--others", "--exclude-standard", "-z"))
	}
}

// TestGlobsOfGit tries globs on names with the characters that mean something in them, and with bytes beyond ASCII.
func TestGlobsOfGit(t *testing.T) {
	root := t.TempDir()
	listed(t, root, "git", "init", "-q")
	for _, dir := range []string{"", "d", "d/e", "d/e/]"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"a", "x", "]f", "]", "[", "-", "^", "!", "ab", "é", "è", "éa", "\xff", "\xc3", "a]", "a-b", "aab", `\`, "*", "7", "F", "g", "Z", "~", ":", "_", " ", "\t", "\v", "\x01", "\x7f", ":]"} {
			if err := os.WriteFile(filepath.Join(root, dir, name+"."), nil, 0o644); err != nil {
				t.Fatal(err)
			}
			if name != "]" { // there it is a folder
				if err := os.WriteFile(filepath.Join(root, dir, name), nil, 0o644); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	for _, glob := range []string{
		"[]x]", "[]-x]", "[^]x]", "[!]x]", "[]]", "[^]]", "[!a]", "[a-]", "[-a]", "[!-a]", "[a-b-x]", "[x-a]", "[!x-a]", `[\]a]`, `[\a-\x]`, `[\\]`, `[\-x]`, "[[]", "[[a]", "[^^]", "[!!]",
		"[a", "[", "[]", "[!", "[^]", "a[", `a\`, "[é]", "[!é]", "[é]a", "?", "??", "???", "?a", "[é-ÿ]", "[\xc3][\xa9]", "\xff", "[\xff]", "[\x80-\xff]*", `\[`, `\*`, `\\`, `\é`, "*]", "*[]b]",
		"[[:alnum:]]", "[[:alpha:]]", "[[:blank:]]", "[[:cntrl:]]", "[[:digit:]]", "[[:graph:]]", "[[:lower:]]", "[[:print:]]", "[[:punct:]]", "[[:space:]]", "[[:upper:]]", "[[:xdigit:]]",
		"[![:alpha:]]", "[^[:punct:]x]", "[[:digit:][:upper:]]", "[x[:digit:]]", "[[:digit:]-x]", "[x-[:digit:]]", "[a-[:]", "*[[:digit:]]*", "[[:digit:]].", "[:digit:]", "[[:digit:]", "[[:digit]]",
		"[[:digit", "[[:", "[[:]", "[[::]]", "[[:none:]]", "[a[:none:]]", "[[:Digit:]]", "[[:digit:x]]", "[[.a.]]", "[[=a=]]", `[[\:digit:]]`, `[\[:digit:]]`, "d/[[:lower:]]", "d[[:punct:]]a", "[[:]:]]",
		"**/[]x]", "d/[]x]", "d/**/[]x]", "/[]x]", "d/**", "d/*/a", "**/e/**", "d/**/a", "**/a*b", "*a*b", "a*a*b", "/**/e/*", "d**a", "**", "/**", "/**\n!d/", "**\n!d/", "d/[^a]", "d[/]a", "d?a", "d*a",
	} {
		if err := os.WriteFile(filepath.Join(root, ".gitignore"), []byte(glob+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		compare(t, 0, root, files(t, root, &ignore.Options{Hidden: true}), listed(t, root, "git", "ls-files", "--others", "--exclude-standard", "-z"))
	}
}

// TestBraces: ripgrep has {a,b} in globs, which Git has not.
func TestBraces(t *testing.T) {
	for glob, want := range map[string]string{
		"*.{c,h}": "a.c a.h b.c .c", "{a,b}.c": "a.c b.c", "{a.{c,h},b.c}": "a.c a.h b.c", "a.{c}": "a.c", "{,a}.c": "a.c .c", "a.[{,c]": "a.c a.{", `a.\{`: "a.{", "{a": "", "a}": "",
		strings.Repeat("{a,b}", 12) + "*": "", "*.{[c],?}": "a.c a.h b.c a.{ .c", strings.Repeat("a", 5000): "", strings.Repeat("{", 40_000) + strings.Repeat("}", 40_000): "",
	} {
		var matched []string
		for _, path := range []string{"a.c", "a.h", "b.c", "a.{", ".c", strings.Repeat("a", 12)} {
			if ignore.Parse([]byte(glob)).Match(path, false) == ignore.Ignore {
				matched = append(matched, path)
			}
		}
		if got := strings.Fields(want); !slices.Equal(slices.Sorted(slices.Values(got)), slices.Sorted(slices.Values(matched))) {
			t.Errorf("%.40s matches %q", glob, matched)
		}
	}
}

func TestFilesOfRipgrep(t *testing.T) {
	if _, err := exec.LookPath("rg"); err != nil {
		t.Skip("rg is not installed")
	}
	for seed := range uint64(12) {
		rng := rand.New(rand.NewPCG(seed, 2))
		root := randomTree(t, rng, true)
		opts := &ignore.Options{Hidden: rng.IntN(2) == 0, NoRules: rng.IntN(4) == 0}
		args := []string{"--no-config", "--files", "-0"}
		if opts.Hidden {
			args = append(args, "--hidden")
		}
		if opts.NoRules {
			args = append(args, "--no-ignore")
		}
		globs := [][]string{nil, nil, {"*.c"}, {"!*.c"}, {"*.{c,h}", "!a.c"}, {"d*/**"}, {"!d"}, {"/d/*"}}[rng.IntN(8)]
		for _, g := range globs {
			args = append(args, "-g", g)
		}
		if globs != nil {
			opts.Globs = ignore.NewGlobs(globs)
		}
		want := slices.DeleteFunc(listed(t, root, "rg", args...), func(p string) bool { return strings.HasPrefix(p, ".git/") })
		compare(t, seed, root, files(t, root, opts), want)
	}
}

// TestPipesHaveNoRules: what stands in the place of a file of Git or of rules is not read unless it is a file. Reading a pipe does not end.
func TestPipesHaveNoRules(t *testing.T) {
	for _, name := range append([]string{".git"}, ignore.RuleFiles...) {
		dir := t.TempDir()
		if err := unix.Mkfifo(filepath.Join(dir, name), 0o600); err != nil {
			t.Fatal(err)
		}
		if ignore.Root(dir, &ignore.Options{}).PassesOver("a.go", "a.go", false) {
			t.Errorf("%s: the pipe has rules", name)
		}
	}
}
