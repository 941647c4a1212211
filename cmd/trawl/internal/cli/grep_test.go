package cli

import (
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"
)

// grepCase is a command line, and what comes of it. With exit status 2 the output need only contain out.
type grepCase struct {
	args string
	exit int
	out  string
}

// grepPond makes a folder to search the working directory of a test.
func grepPond(t *testing.T) (env []string) {
	t.Helper()
	t.Chdir(t.TempDir())
	for path, content := range map[string]string{
		"pond/fish.go":         "package pond\n\ntype Fish struct{ Name string }\n",
		"pond/net/a.py":        "def haul():\n    return fish\n",
		"pond/.ignore":         "*.log\n",
		"pond/old.log":         "fish\n",
		"pond/.hidden/fish.md": "fish\n",
		"nul":                  "\x00\nfish\n",
	} {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	old := time.Unix(1e9, 0)
	if err := os.Chtimes("pond/old.log", old, old); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("pond/old.log", "link"); err != nil {
		t.Fatal(err)
	}
	return []string{"XDG_CACHE_HOME=" + t.TempDir()}
}

func (c grepCase) check(t *testing.T, env []string) {
	t.Helper()
	exit, out, errs := run(t, env, append([]string{"grep"}, strings.Fields(c.args)...)...)
	exact := c.exit < 2 && !strings.HasPrefix(c.out, "forgot") && !strings.Contains(c.args, "--stats")
	if exit != c.exit || !strings.Contains(out+errs, c.out) || exact && (out != c.out || errs != "") {
		t.Errorf("trawl grep %s: exit %d\n%s%s", c.args, exit, out, errs)
	}
}

// TestGrep runs typical command lines. internal/grep compares the lines with ripgrep's.
func TestGrep(t *testing.T) {
	env := grepPond(t)
	for _, c := range []grepCase{
		{"-i fish pond", 0, "pond/fish.go:3:type Fish struct{ Name string }\npond/net/a.py:2:    return fish\n"},
		{"-S fish -l pond/", 0, "pond/fish.go\npond/net/a.py\n"},
		{"-S -i FISH -l pond", 0, "pond/fish.go\npond/net/a.py\n"},
		{"-i -S FISH -l pond", 1, ""},
		{"-i -s FISH -l pond", 1, ""},
		{"-S --case-sensitive Fish -l pond", 0, "pond/fish.go\n"},
		{"-i -i=false FISH pond", 1, ""},
		{"-i=maybe FISH pond", 2, "want true or false"},
		{"-c -e fish -e haul pond", 0, "pond/net/a.py:2\n"},
		{"-o -w n=false", 1, ""},
		{"-n=false -o Fi. ./pond", 0, "./pond/fish.go:Fis\n"},
		{"--hidden -l fish pond", 0, "pond/.hidden/fish.md\npond/net/a.py\n"},
		{"--no-ignore -l fish pond", 0, "pond/net/a.py\npond/old.log\n"},
		{"-g *.log -l fish pond", 0, "pond/old.log\n"},
		{"-A1 haul pond", 0, "pond/net/a.py:1:def haul():\npond/net/a.py-2-    return fish\n"},
		{"-C1 -F haul() pond", 0, "pond/net/a.py:1:def haul():\npond/net/a.py-2-    return fish\n"},
		{"-o -r $1é (fi)sh pond", 0, "pond/net/a.py:2:fié\n"}, // names of groups are ASCII, as ripgrep's
		{"-o -r $01-${01}$é$_$ (fi)sh pond", 0, "pond/net/a.py:2:fi-fi$é$\n"},
		{"-U -o \\n pond/net", 0, ""}, // lines are selected, and nothing of them is shown
		{"-U -o \\n\\n pond/net", 1, ""},
		{"-v -l x pond", 0, "pond/fish.go\npond/net/a.py\n"},
		{"whale pond", 1, ""},
		{"fish( pond", 2, "missing closing )"},
		{"fish nowhere", 2, "nowhere"},
		{"-g [ fish pond", 2, "[ without its ]"},
		{"-g *.{c,h fish pond", 2, "{ without its }"},
		{"-l -c fish pond", 2, "exclude each other"},
		{"-A -1 fish pond", 2, "want a whole number"},
		{"fish pond/old.log", 0, "pond/old.log:1:fish\n"},
		{"-l fish pond/.hidden/fish.md", 0, "pond/.hidden/fish.md\n"},
		{"-c fish ./link", 0, "./link:1\n"},
		{"whale link", 1, ""},
		{"fish nul", 2, "nul is binary"},
		{"fish nul -g *.go", 2, "nul is binary"},
		{"fish . -l -g pond/**/*.py", 0, "./pond/net/a.py\n"},
		{"fish ./pond -l -g /pond/net/*", 0, "./pond/net/a.py\n"},
		{"fish pond -l -g ./pond/net/*", 1, ""}, // as ripgrep: a glob has no . in it
		{"fish . -l -g !pond/net/**", 1, ""},
		{"fish pond/../pond/net -l -g pond/**/*.py", 0, "pond/../pond/net/a.py\n"},
		{"", 2, "pattern is missing"},
		{"--forget pond", 0, "forgot pond: "},
	} {
		c.check(t, env)
	}
	if exit, out, errs := run(t, env, "grep", "-l", "fish", "pond", "-g", ""); exit != 0 || out != "pond/net/a.py\n" {
		t.Errorf("an empty glob: exit %d: %s%s", exit, out, errs)
	}
	if exit, out, errs := run(t, env, "grep", "fish", ""); exit != 2 || out != "" || !strings.Contains(errs, "a dot is the working directory") {
		t.Errorf("a folder without a name: exit %d: %s%s", exit, out, errs)
	}
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	if exit, out, errs := run(t, env, "grep", "-l", "fish", here, "-g", "pond/**/*.py"); exit != 0 || out != here+"/pond/net/a.py\n" {
		t.Errorf("a glob for an absolute folder: exit %d: %s%s", exit, out, errs)
	}
}

// TestGrepReflexes: what somebody who knows ripgrep types without thinking.
func TestGrepReflexes(t *testing.T) {
	env := grepPond(t)
	for _, c := range []grepCase{
		{"-l -i fish pond/net pond/old.log pond/fish.go", 0, "pond/net/a.py\npond/old.log\npond/fish.go\n"},
		{"-e fish -C1 pond/old.log pond/net", 0, "pond/old.log:1:fish\n--\npond/net/a.py-1-def haul():\npond/net/a.py:2:    return fish\n"},
		{"fish nowhere pond/old.log", 2, "pond/old.log:1:fish\ntrawl: stat nowhere: no such file or directory\ntrawl: not all was searched\n"},
		{"fish nowhere pond/none", 2, "trawl: stat nowhere: no such file or directory\ntrawl: stat pond/none: no such file or directory\n"},
		{"-m0 fish pond", 1, ""},
		{"-q fish pond", 0, ""},
		{"-q whale pond", 1, ""},
		{"-q fish pond nul", 0, ""},
		{"-m1 . pond/net", 0, "pond/net/a.py:1:def haul():\n"},
		{"-m1 -A1 . pond/net", 0, "pond/net/a.py:1:def haul():\npond/net/a.py:2:    return fish\n"},
		{"-m1 -c . pond", 0, "pond/fish.go:1\npond/net/a.py:1\n"},
		{"-i -t go fish pond -l", 0, "pond/fish.go\n"},
		{"-i -t golang -t py fish pond -l", 0, "pond/fish.go\npond/net/a.py\n"},
		{"-i -T python fish pond -l", 0, "pond/fish.go\n"},
		{"-t cobol fish pond", 1, ""},
		{"-t fish++ fish pond", 2, `unknown language "fish++"`},
		{"-i --color always -o fish pond/fish.go", 0, "\x1b[35mpond/fish.go\x1b[0m:\x1b[32m3\x1b[0m:\x1b[1;31mFish\x1b[0m\n"},
		{"--color always -A1 (ha|u)l pond/net", 0, "\x1b[35mpond/net/a.py\x1b[0m:\x1b[32m1\x1b[0m:def ha\x1b[1;31mul\x1b[0m():\n\x1b[35mpond/net/a.py\x1b[0m-\x1b[32m2\x1b[0m-    return fish\n"},
		{"--color always -v haul pond/net", 0, "\x1b[35mpond/net/a.py\x1b[0m:\x1b[32m2\x1b[0m:    return fish\n"},
		{"--color pink fish pond", 2, "pink"},
		{"(ha)(ul) -r $2-${1}$$ pond", 0, "pond/net/a.py:1:def ul-ha$():\n"},
		{"(?P<verb>ha)ul -o -r $verb -C1 pond", 0, "pond/net/a.py:1:ha\npond/net/a.py-2-    return fish\n"},
		{"--color always ha(ul) -r=$1 pond", 0, "\x1b[35mpond/net/a.py\x1b[0m:\x1b[32m1\x1b[0m:def \x1b[1;31mul\x1b[0m():\n"},
		{`-U haul\(\):\s+return pond`, 0, "pond/net/a.py:1:def haul():\npond/net/a.py:2:    return fish\n"},
		{`-U -o haul\(\):\s+return pond`, 0, "pond/net/a.py:1:haul():\npond/net/a.py:2:    return\n"},
		{`-U -r <$1> haul\(\):\s+(\w+) pond`, 0, "pond/net/a.py:1:def <return> fish\n"},
		{`haul\(\):\n pond`, 2, "-U searches several lines"},
		{"--sort modified -l fish pond/net pond/old.log", 0, "pond/old.log\npond/net/a.py\n"},
		{"--sort none -l fish pond/net pond/old.log", 0, "pond/net/a.py\npond/old.log\n"},
		{"--sortr path -i -l fish pond", 0, "pond/net/a.py\npond/fish.go\n"},
		{"--sort size fish pond", 2, `unknown order "size"`},
		{"--stats -l fish pond", 0, "pond/net/a.py\n\n1 matches\n1 matched lines\n1 files contained matches\n2 files searched\n14 bytes printed\n"},
	} {
		c.check(t, env)
	}
}

// TestGrepNamedBinaryFile: all that comes before the NUL byte of a binary file is found if the file is named.
func TestGrepNamedBinaryFile(t *testing.T) {
	t.Chdir(t.TempDir())
	for path, content := range map[string]string{
		"late":  "fish early\nwhale\x00\nfish late\n",
		"later": "\xef\xbb\xbfherring\n" + strings.Repeat("whale\n", 20_000) + "cod\x00\n",
		"wide":  "\xff\xfef\x00i\x00s\x00h\x00\n\x00\x00\x00",
	} {
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		args string
		exit int
		out  string
	}{
		{"-l fish late", 0, "late\n"},
		{"-c fish late", 0, "late:1\n"},
		{"-c -v fish late", 0, "late:1\n"},
		{"-o -c fish late", 0, "late:1\n"},
		{"fish late", 0, "late:1:fish early\nlate: WARNING: stopped searching binary file after match (found \"\\0\" byte around offset 16)\n"},
		{"-l whale$ late", 0, "late\n"}, // for ripgrep a NUL byte ends a line of such a file
		{"late late", 2, "late is binary: what comes after its NUL byte at offset 16"},
		{"-c late late", 2, "late is binary"},
		{"-c cod later", 0, "later:1\n"},
		{"-l fish wide", 0, "wide\n"},
		{"-c shark wide", 2, "wide is binary"},
	} {
		exit, out, errs := run(t, nil, append([]string{"grep"}, strings.Fields(c.args)...)...)
		if exit != c.exit || !strings.Contains(out+errs, c.out) || c.exit == 0 && (out != c.out || errs != "") {
			t.Errorf("trawl grep %s: exit %d\n%s%s", c.args, exit, out, errs)
		}
	}
}

// TestGrepWithoutAnIndex: a search needs no folder for its index.
func TestGrepWithoutAnIndex(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.Mkdir("pond", 0o755); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"pond/a", "file"} {
		if err := os.WriteFile(path, []byte("fish\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	file, err := filepath.Abs("file")
	if err != nil {
		t.Fatal(err)
	}
	for _, env := range [][]string{
		nil, {"HOME="}, {"HOME=relative"}, {"XDG_CACHE_HOME=relative"}, {"XDG_CACHE_HOME=" + file}, {"HOME=" + file}, {"HOME=/proc/1/none"}, {"XDG_CACHE_HOME=/dev/null"},
	} {
		exit, out, errs := run(t, env, "grep", "fish", "pond")
		if exit != 0 || out != "pond/a:1:fish\n" || !strings.Contains(errs, "index") {
			t.Errorf("%q: exit %d: %s%s", env, exit, out, errs)
		}
	}
	if exit, _, errs := run(t, nil, "grep", "--forget", "pond"); exit == 0 || !strings.Contains(errs, "XDG_CACHE_HOME") {
		t.Errorf("forgetting without a folder: exit %d: %s", exit, errs)
	}
	if _, err := os.Stat("relative"); err == nil {
		t.Error("an index was made in the working directory")
	}
}

// grepPage is docs/grep.md, and a folder for its examples to search.
func grepPage(t *testing.T) (page string, env []string) {
	t.Helper()
	text, err := os.ReadFile("../../../../docs/grep.md")
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	for path, content := range map[string]string{
		"src/net/http/server.go": strings.Repeat("\n", 2325) + "func NotFoundHandler() Handler { return HandlerFunc(NotFound) }\n// todo: open and close; deprecated\n",
	} {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return string(text), []string{"XDG_CACHE_HOME=" + t.TempDir()}
}

// TestGrepPage runs the examples of docs/grep.md: each finds something, and prints what the page shows.
func TestGrepPage(t *testing.T) {
	page, env := grepPage(t)
	_, example, _ := strings.Cut(page, "```console\n$ ")
	example, _, _ = strings.Cut(example, "\n```")
	examples := strings.Split(example, "\n$ ")
	if len(examples) < 5 {
		t.Fatalf("only %d examples", len(examples))
	}
	for _, example := range examples {
		command, shown, _ := strings.Cut(example, "\n")
		command, _, _ = strings.Cut(command, "  ")
		var args []string
		for _, word := range regexp.MustCompile(`'[^']*'|\S+`).FindAllString(command, -1) {
			args = append(args, strings.Trim(word, "'"))
		}
		exit, out, errs := run(t, env, args[1:]...)
		if args[0] != "trawl" || exit != 0 || out == "" || shown != "" && out != shown+"\n" {
			t.Errorf("%s: exit %d: %s%s", command, exit, out, errs)
		}
	}
}

// TestGrepPageOnPatterns: trawl grep refuses the patterns that the table of docs/grep.md lists as
// refused, and accepts those that it lists as characters.
func TestGrepPageOnPatterns(t *testing.T) {
	page, env := grepPage(t)
	tried := map[bool]int{}
	for _, row := range regexp.MustCompile(`(?m)^\| (.*?) \| .*? \| (refused|the character)`).FindAllStringSubmatch(page, -1) {
		for _, code := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(row[1], -1) {
			pattern, refused := code[1], row[2] == "refused"
			if strings.HasSuffix(row[1], " in a class") && !strings.HasPrefix(pattern, "[") {
				pattern = "[a" + pattern + "b]"
			}
			exit, _, errs := run(t, env, "grep", "-e", pattern, "src")
			if (exit == 2) != refused {
				t.Errorf("%s: exit %d: %s", pattern, exit, errs)
			}
			tried[refused]++
		}
	}
	if tried[true] < 10 || tried[false] < 2 {
		t.Errorf("%d patterns were refused, %d not", tried[true], tried[false])
	}
}

// TestGrepStandardInput: a pipe is searched if nothing else is named, and so is -. Its lines have neither a path nor, unless asked for, numbers.
func TestGrepStandardInput(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.WriteFile("a", []byte("a fish\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args, input string
		exit        int
		out         string
	}{
		{"fish", "one\na fish\nfishes\n", 0, "a fish\nfishes\n"},
		{"-n fish", "one\na fish\n", 0, "2:a fish\n"},
		{"-c fish -", "fish\nfish", 0, "2\n"},
		{"-l fish -", "fish\n", 0, "<stdin>\n"},
		{"whale -", "fish\n", 1, ""},
		{"fish", "", 1, ""},
		{"fish a", "fish\n", 0, "a:1:a fish\n"},
		{"fish a -", "fish 2\n", 0, "a:a fish\nfish 2\n"},
		{"fish", strings.Repeat("x\n", 1<<20) + "fish", 0, "fish\n"},
	} {
		in, to, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		var writing sync.WaitGroup
		writing.Go(func() {
			_, _ = io.WriteString(to, c.input) // the reader may have gone
			_ = to.Close()
		})
		var out, errs strings.Builder
		exit := Run(t.Context(), append([]string{"grep"}, strings.Fields(c.args)...), Process{In: in, Out: &out, Err: &errs})
		_ = in.Close()
		if writing.Wait(); exit != c.exit || out.String() != c.out {
			t.Errorf("trawl grep %s: exit %d: %s%s", c.args, exit, out.String(), errs.String())
		}
	}
	if exit, _, errs := run(t, nil, "grep", "fish", "-"); exit != 2 || !strings.Contains(errs, "no standard input") {
		t.Errorf("without a standard input: exit %d: %s", exit, errs)
	}
}
