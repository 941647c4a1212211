package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	ingestv1 "github.com/trawl-search/trawl/proto/trawl/ingest/v1"
)

// TestMistakes: what is mistyped gets the names that are spelled like it, and no words of Go's.
func TestMistakes(t *testing.T) {
	for args, want := range map[string]string{
		"serch x":                               `unknown command "serch" for "trawl"; the nearest: search; see trawl --help`,
		"repo":                                  `unknown command "repo" for "trawl"; the nearest: repos; see trawl --help`,
		"xyzzy":                                 `unknown command "xyzzy" for "trawl"; see trawl --help`,
		"help serch":                            `unknown command "serch" for "trawl"; the nearest: search; see trawl --help`,
		"help tokens lst":                       `unknown command "lst" for "trawl tokens"; the nearest: list; see trawl tokens --help`,
		"completion zssh":                       `unknown command "zssh" for "trawl completion"; the nearest: zsh; see trawl completion --help`,
		"grep -t pyton x":                       `unknown language "pyton"; the nearest: pycon, python`,
		"tokens lst":                            `unknown command "lst" for "trawl tokens"; the nearest: list; see trawl tokens --help`,
		"shard serch":                           `unknown command "serch" for "trawl shard"; the nearest: search; see trawl shard --help`,
		"sources aply":                          `unknown command "aply" for "trawl sources"; the nearest: apply; see trawl sources --help`,
		"def":                                   `want NAME [QUERY...], got nothing; see trawl def --help`,
		"open a b":                              `want REPO[:PATH[:LINE]], got ["a" "b"]; see trawl open --help`,
		"limits set x":                          `want NAME VALUE, got ["x"]; see trawl limits set --help`,
		"search --fils x":                       `unknown flag: --fils; the nearest: --files; see trawl search --help`,
		"search --col x":                        `unknown flag: --col; the nearest: --color, --column; see trawl search --help`,
		"up --datadir x":                        `unknown flag: --datadir; the nearest: --data-dir; see trawl up --help`,
		"grep --colour=never x":                 `unknown flag: --colour; the nearest: --color; see trawl grep --help`,
		"search --xyzzy x":                      `unknown flag: --xyzzy; see trawl search --help`,
		`search -f:_test x`:                     `unknown shorthand flag: 'f' in -f:_test; a text that begins with a dash comes after "--": trawl search -- -f:_test x; see trawl search --help`,
		`search -C 2 -f:_test\.go$`:             `unknown shorthand flag: 'f' in -f:_test\.go$; a text that begins with a dash comes after "--": trawl search -C 2 -- '-f:_test\.go$'; see trawl search --help`,
		`search -lang:go x`:                     `unknown shorthand flag: 'a' in -ang:go; a text that begins with a dash comes after "--": trawl search -- -lang:go x; see trawl search --help`,
		"limits set --addr=h:5 caller-calls -5": `unknown shorthand flag: '5' in -5; a text that begins with a dash comes after "--": trawl limits set --addr=h:5 caller-calls -- -5; see trawl limits set --help`,
		"limits set caller-calls -5 --addr=h:5": `unknown shorthand flag: '5' in -5; a text that begins with a dash comes after "--": trawl limits set caller-calls --addr=h:5 -- -5; see trawl limits set --help`,
		"search -f:_test x -f:b -C 2 y":         `unknown shorthand flag: 'f' in -f:_test; a text that begins with a dash comes after "--": trawl search -C 2 y -- -f:_test x -f:b; see trawl search --help`,
		"limits set caller-calls -5":            `unknown shorthand flag: '5' in -5; a text that begins with a dash comes after "--": trawl limits set caller-calls -- -5; see trawl limits set --help`,
		"search -P x":                           `unknown shorthand flag: 'P' in -P; see trawl search --help`,
		"search -nL x":                          `unknown shorthand flag: 'L' in -L; see trawl search --help`,
		"grep -uu x":                            `unknown shorthand flag: 'u' in -uu; see trawl grep --help`,
		"search --addr host x":                  `--addr is "host": want HOST:PORT of the gRPC server, such as 127.0.0.1:7430`,
		"repos --addr http://host:7431":         `--addr is "http://host:7431": want HOST:PORT of the gRPC server, such as 127.0.0.1:7430`,
		"search -C abc x":                       `--context is "abc": want a whole number from 0 to 4294967295; see trawl search --help`,
		"search --max-files=-1 x":               `--max-files is "-1": want a whole number from 0 to 4294967295; see trawl search --help`,
		"search --timeout 5 x":                  `--timeout is "5": want a duration such as 500ms, 10s or 1m30s; see trawl search --help`,
		"search --count-only=7 x":               `--count-only is "7": want true or false; see trawl search --help`,
		"repos --older-than=-1s":                `--older-than is -1s: want 0s or more; see trawl repos --help`,
		"search --any -F x":                     `--any is for the words of a QUERY, which is a pattern with -F, -w or -e: leave them out`,
		"repos --stale --skipped 3":             `--skipped lists files of indexes: it excludes --stale and --older-than; see trawl repos --help`,
		"repos reindex --rate x --a":            `--rate is "x": want a number; see trawl repos reindex --help`,
	} {
		if exit, _, errs := run(t, nil, strings.Split(args, " ")...); exit != 2 || errs != "trawl: "+want+"\n" {
			t.Errorf("%s: exit %d: %s", args, exit, errs)
		}
	}
}

// TestArgumentsBeyondUTF8: names and queries are in UTF-8, and who types others learns so, in no words of gRPC's.
func TestArgumentsBeyondUTF8(t *testing.T) {
	for _, args := range [][]string{
		{"search", "h\xe9ron"}, {"search", "-c", "-e", "h\xe9ron"}, {"search", "heron", "-r", "h\xe9ron"}, {"def", "h\xe9ron"}, {"refs", "h\xe9ron"},
		{"cat", "-b", "h\xe9ron", "r:a"}, {"repos", "h\xe9ron"}, {"repos", "status", "h\xe9ron"}, {"delete", "h\xe9ron"},
	} {
		exit, _, errs := trawl(t, &scripted{}, args...)
		if want := "trawl: \"h\\xe9ron\" is not in UTF-8, as names and queries are; \\x{FFFD} in an expression finds bytes that are not\n"; exit == 0 || errs != want {
			t.Errorf("%q: exit %d: %s", args, exit, errs)
		}
	}
}

// TestFoldersToIndex: a folder that is not here is no URL.
func TestFoldersToIndex(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.WriteFile("file", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll("repo/a/b", 0o700); err != nil {
		t.Fatal(err)
	}
	for _, repo := range []string{"plain", "repo/.git", "repo/a/bare.git", "repo/a/bare.git/HEAD", "repo/a/packed.git"} {
		if err := os.Mkdir(repo, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("refs/heads/main", "repo/a/packed.git/HEAD"); err != nil {
		t.Fatal(err)
	}
	if exit, _, errs := run(t, nil, "index", ""); exit != 2 || errs != "trawl: the URL or path is empty: a dot is the working directory\n" {
		t.Errorf("nothing: exit %d: %s", exit, errs)
	}
	for arg, want := range map[string]string{
		"repo/a/b":                      "repo/a/b is a folder of the repository /",
		"plain":                         "plain is not a Git repository; trawl grep searches any folder. file:///",
		"nosuch":                        "there is no folder nosuch here; a repository elsewhere has a URL such as https://HOST/PATH",
		"./no/such":                     "there is no folder ./no/such here",
		"github.com/a/b":                "there is no folder github.com/a/b here",
		"file":                          "file is a file: a repository is a folder or a URL",
		filepath.Join(".", "file", "x"): "looking for the repository",
	} {
		if exit, _, errs := run(t, nil, "index", arg, "--addr", "127.0.0.1:1"); exit != 1 || !strings.HasPrefix(errs, "trawl: "+want) {
			t.Errorf("%s: exit %d: %s", arg, exit, errs)
		}
	}
	for _, arg := range []string{"https://host/a", "git@host:a", "host:a", "/srv/elsewhere", "repo", "repo/a/bare.git", "repo/a/packed.git"} { // the router decides
		if _, _, errs := run(t, nil, "index", arg, "--addr", "127.0.0.1:1"); !strings.Contains(errs, "cannot reach Trawl") {
			t.Errorf("%s: %s", arg, errs)
		}
	}
}

// TestBrokenExpressions: the place of a mistake is one in the pattern as it was given, and not in the query that is made of it.
func TestBrokenExpressions(t *testing.T) {
	for _, tt := range []struct {
		args  []string
		shows string
	}{
		{[]string{"-e", "["}, `byte 0: found "["; expected a closing "]"; write \[ to search for a bracket` + "\n  [\n  ^\n"},
		{[]string{"-e", "fish", "-e", `"\\\y`, "lang:go"}, `byte 3: found "\y"; expected an escape that RE2 knows (such as \d \w \s \b \n); write \\ to search for one \` + "\n  \"\\\\\\y\n     ^\n"},
		{[]string{"-w", "a["}, `byte 1: found "["; expected a closing "]"; write \[ to search for a bracket` + "\n  a[\n   ^\n"},
		{[]string{"-e", `a\`}, `byte 1: found a \ at the end of a regular expression; expected a character after it; write \\ (in quotes \\\\) to search for one \` + "\n  a\\\n   ^\n"},
		{[]string{"-r", "fish", "-r", "x(", "y"}, `byte 1: found "(" without its ")"; expected a closing ")"; write \( to search for a parenthesis` + "\n  x(\n   ^\n"},
		{[]string{"-t", "go", "func x("}, `byte 6: found "(" without its ")"; expected a closing ")"; write \( to search for a parenthesis` + "\n  func x(\n        ^\n"},
		{[]string{"-t", "go", "a) or (b"}, `byte 1: found ")"; expected a "(" somewhere before it; write \) to search for a parenthesis` + "\n  a) or (b\n   ^\n"},
		{[]string{"-g", "*.go", "--any", "fish", "y)"}, `byte 6: found ")"; expected a "(" somewhere before it; write \) to search for a parenthesis` + "\n  fish y)\n        ^\n"},
	} {
		s := &scripted{}
		if exit, _, errs := trawl(t, s, append([]string{"search"}, tt.args...)...); exit != 2 || errs != "trawl: query syntax error at "+tt.shows || s.searched != nil {
			t.Errorf("%q: exit %d: %s, want %s", tt.args, exit, errs, tt.shows)
		}
	}
	for _, args := range [][]string{{"-F", "["}, {"-e", ""}, {"-w", "a|b"}, {"-F", "-w", "("}, {"-r", "", "x"}} {
		s := &scripted{answer: oneFile()}
		if exit, _, errs := trawl(t, s, append([]string{"search"}, args...)...); exit != 0 || s.searched == nil {
			t.Errorf("%q: exit %d: %s", args, exit, errs)
		}
	}
}

// TestEmptyNames: an empty name, as of a variable that is not set, is an error of usage in every command.
func TestEmptyNames(t *testing.T) {
	for _, args := range [][]string{
		{"cat", ""}, {"def", ""}, {"refs", "", "lang:go"}, {"open", ""}, {"index", ""}, {"delete", ""}, {"repos", "delete", ""}, {"repos", "status", ""},
		{"repos", "reindex", "a", ""}, {"jobs", "show", ""}, {"jobs", "retry", ""}, {"searchers", "drain", ""}, {"sources", "status", ""},
		{"limits", "set", "", "3"}, {"limits", "unset", ""}, {"tokens", "revoke", ""}, {"shard", "verify", ""}, {"shard", "build", "--out", "x", ""},
	} {
		s := &scripted{}
		if exit, out, errs := trawl(t, s, args...); exit != 2 || out != "" || strings.Count(errs, "\n") != 1 || s.deleted != "" || s.places != nil {
			t.Errorf("%q: exit %d: %s%s", args, exit, out, errs)
		}
	}
	const want = "trawl: an argument is empty: want REPO; see trawl delete --help\n"
	if _, _, errs := run(t, nil, "delete", ""); errs != want {
		t.Errorf("printed %q, want %q", errs, want)
	}
}

// TestIndexByName: a repo is indexed by its URL, and who gives its name learns that.
func TestIndexByName(t *testing.T) {
	t.Chdir(t.TempDir())
	s := &scripted{statuses: []*ingestv1.RepoStatus{{Name: "host/pond"}}}
	exit, _, errs := trawl(t, s, "index", "host/pond")
	const want = "trawl: host/pond is the name of a repo, and no folder here: trawl repos reindex host/pond indexes it again\n"
	if exit != 1 || errs != want || s.put != nil {
		t.Errorf("exit %d, printed %q, want %q", exit, errs, want)
	}
	if _, _, errs := trawl(t, s, "index", "xx"); !strings.HasPrefix(errs, "trawl: there is no folder xx here") {
		t.Errorf("no repo of that name: %s", errs)
	}
}

// TestNothingFits: a prefix that no repo has is an error, a Trawl without repos is none, and a file is named by one argument.
func TestNothingFits(t *testing.T) {
	none := &scripted{}
	for _, flags := range []string{"--json", "--stale", "--stale --json", "--older-than=5m"} {
		exit, out, errs := trawl(t, none, append([]string{"repos", "pre"}, strings.Split(flags, " ")...)...)
		if exit != 1 || out != "" || !strings.Contains(errs, `no repo has a name that begins with "pre"`) {
			t.Errorf("a prefix of no name, %s: exit %d, printed %q and %q", flags, exit, out, errs)
		}
	}
	if exit, _, errs := trawl(t, none, "repos"); exit != 0 || !strings.Contains(errs, "no repo is indexed yet") {
		t.Errorf("no repos: exit %d: %s", exit, errs)
	}
	if exit, _, errs := trawl(t, none, "cat", "host/pond", "carp.go"); exit != 2 || !strings.Contains(errs, "want REPO:PATH, with a colon between them") {
		t.Errorf("cat REPO PATH: exit %d: %s", exit, errs)
	}
}

// TestListOfEveryGroup: what lists is called list in every group of commands, also where the group lists by itself.
func TestListOfEveryGroup(t *testing.T) {
	s := &scripted{statuses: []*ingestv1.RepoStatus{{Name: "host/pond"}}}
	for _, group := range []string{"repos", "sources"} {
		for _, flags := range [][]string{nil, {"--json"}} {
			exit, out, errs := trawl(t, s, append([]string{group, "list"}, flags...)...)
			wantExit, want, wantErrs := trawl(t, s, append([]string{group}, flags...)...) // the scripted router has no sources, which is an error
			if exit != wantExit || out != want || errs != wantErrs {
				t.Errorf("%s list %v: exit %d, printed %q and %q, want %d, %q and %q", group, flags, exit, out, errs, wantExit, want, wantErrs)
			}
		}
	}
	if exit, out, errs := trawl(t, s, "repos", "list", "host/"); exit != 0 || !strings.Contains(out, "host/pond") {
		t.Errorf("with a prefix: exit %d: %s%s", exit, out, errs)
	}
}

// TestHelp: help of a command is that of its flag --help.
func TestHelp(t *testing.T) {
	for _, args := range [][]string{{}, {"search"}, {"tokens", "list"}, {"completion"}} {
		exit, got, _ := run(t, nil, append([]string{"help"}, args...)...)
		if _, want, _ := run(t, nil, append(args, "--help")...); exit != 0 || got != want || got == "" {
			t.Errorf("help %v: exit %d: %s", args, exit, got)
		}
	}
}
