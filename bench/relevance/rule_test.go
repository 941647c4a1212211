package relevance

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/trawl-search/trawl/bench/corpus"
)

func TestSubwords(t *testing.T) {
	for name, want := range map[string]string{
		"ReadFileHeader": "read file header", "read_file_2": "read file 2", "HTTPServer": "http server", "utf8Decode": "utf 8 decode", "__init": "init", "": "",
	} {
		if got := strings.Join(subwords(name), " "); got != want {
			t.Errorf("subwords of %q are %q, not %q", name, got, want)
		}
	}
}

func TestDefinitions(t *testing.T) {
	for _, c := range []struct{ ext, text, want string }{
		{".go", "// Opener opens\n// files.\ntype Opener struct{}\nfunc (o *Opener) OpenFile(x int) {\n", "Opener: Opener opens/files.; OpenFile: "},
		{".rs", "/// Parses it.\n#[inline]\npub fn parse_it(a: u8) {\n", "parse_it: Parses it."},
		{".c", "/* Sends all\n * of it. */\nstatic int sendAll(int fd) {\n  callOther(fd);\n", "sendAll: Sends all/of it. */"},
		{".py", "class Thing:\n    \"\"\"Holds\n    things.\"\"\"\n    def get_it(self):\n        \"\"\"Gets it.\"\"\"\n", "Thing: Holds/things.; get_it: Gets it."},
		{".ts", "export interface Options {\nconst hidden = 1\n", "Options: "},
		{".java", "  public final class Reader {\n", "Reader: "},
	} {
		var got []string
		for _, d := range definitions(&file{text: c.text, ext: c.ext}) {
			got = append(got, d.name+": "+strings.Join(d.comment, "/"))
		}
		if strings.Join(got, "; ") != c.want {
			t.Errorf("%s: found %q, not %q", c.ext, strings.Join(got, "; "), c.want)
		}
	}
}

// madeTree has what each rule asks for, a hundred times over.
func madeTree() *tree {
	r := &tree{repos: []string{"r"}, files: map[string][]*file{}, commits: map[string][]commit{}}
	letters := func(i int) string { return string(rune('a'+i/10)) + string(rune('a'+i%10)) }
	for i := range 100 {
		n := letters(i)
		text := fmt.Sprintf("// Fetch%sWidgetSlowly carefully collects %s shiny gadgets beneath everything.\nfunc Fetch%sWidgetSlowly(a int) {\n\tFetch%sWidgetSlowly(argument%s)\n}\n// fetch widget slowly collects carefully shiny gadgets %s",
			n, n, n, letters((i+1)%100), n, strings.Repeat("Fetch"+letters((i+2)%100)+"WidgetSlowly Fetch"+letters((i+3)%100)+"WidgetSlowly\nargument"+letters((i+1)%100)+"\n", 2))
		f := &file{repo: "r", path: "dir/widget_" + n + "_maker.go", text: text, ext: ".go"}
		f.lower = strings.ToLower(f.path + "\n" + f.text)
		r.files["r"] = append(r.files["r"], f)
		r.commits["r"] = append(r.commits["r"], commit{"carefully collect gadgets more", f})
	}
	return r
}

// TestQueriesKeepTheirRules: targets are the only files that answer, halves are equal and do not
// depend on the order in which files are read.
func TestQueriesKeepTheirRules(t *testing.T) {
	made := madeTree()
	queries := generate(made)
	number, tuning := map[kind]int{}, map[kind]int{}
	for _, q := range queries {
		number[q.kind]++
		if q.tuning {
			tuning[q.kind]++
		}
		i := slices.IndexFunc(made.files["r"], func(f *file) bool { return f.name() == q.targets[0] })
		if i < 0 {
			t.Fatalf("%+v has a target that is not there", q)
		}
		f := made.files["r"][i]
		for word := range strings.FieldsSeq(q.query) {
			if !strings.Contains(f.lower, strings.ToLower(word)) {
				t.Errorf("%+v: the target does not hold %s", q, word)
			}
		}
		if q.kind == definitionKind && !strings.Contains(f.text, "func "+q.query+"(") || q.kind == phraseKind && !strings.Contains(f.text, q.query) {
			t.Errorf("%+v is not answered by %s", q, f.text)
		}
	}
	for _, s := range sources {
		want := 0
		for _, o := range sources {
			if o.kind == s.kind {
				want += o.perRepo
			}
		}
		if number[s.kind] != want || 2*tuning[s.kind] != want {
			t.Errorf("%d %s, %d of them to tune on: %d are wanted, half of them to tune on", number[s.kind], s.kind, tuning[s.kind], want)
		}
	}
	slices.Reverse(made.files["r"])
	if again := generate(made); digest(again) != digest(queries) {
		t.Error("the queries depend on the order of the files")
	}
}

// TestExport: files of the commit, without those that are too large, and commits of one file.
func TestExport(t *testing.T) {
	dir := t.TempDir()
	repo := filepath.Join(dir, "repo")
	run := func(args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "git", append([]string{"-C", repo, "-c", "user.name=a", "-c", "user.email=a@b"}, args...)...)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("git %v: %v: %s", args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	write := func(path, text string) {
		t.Helper()
		full := filepath.Join(repo, path)
		if err := os.MkdirAll(filepath.Dir(full), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(full, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(repo, 0o700); err != nil {
		t.Fatal(err)
	}
	run("init", "--quiet")
	write("src/a.go", "package a\n")
	write("src/b.go", "package a\n")
	write("large.bin", strings.Repeat("x", maxExported))
	run("add", ".")
	run("commit", "--quiet", "-m", "two files")
	write("src/a.go", "package a // changed\n")
	write("src/a_test.go", "package a\n")
	run("add", ".")
	run("commit", "--quiet", "-m", "one file and its test")
	p := pinned{name: "repo", commit: run("rev-parse", "HEAD")}
	r := corpus.Repo{Name: "repo", Dir: filepath.Join(dir, "out")}
	if err := p.export(t.Context(), repo, r.Dir); err != nil {
		t.Fatal(err)
	}
	files, err := readFiles(r, isSource)
	if err != nil || len(files) != 3 || files[0].path != "src/a.go" || files[0].aside || !files[1].aside {
		t.Fatalf("read %d files: %v", len(files), err)
	}
	if _, err := os.Stat(filepath.Join(r.Dir, "large.bin")); err == nil {
		t.Error("a file that is too large was written")
	}
	commits, err := p.readCommits(t.Context(), repo, files)
	if err != nil || len(commits) != 1 || commits[0].subject != "one file and its test" || commits[0].file != files[0] {
		t.Errorf("read commits %v: %v", commits, err)
	}
}

func TestMeasure(t *testing.T) {
	got := measure([]int{1, 2, 0, 10})
	if want := (figures{0.4, [3]float64{25, 50, 75}}); got != want {
		t.Errorf("measured %v, not %v", got, want)
	}
}

// TestOtherDefinitionsAnswer: every file that defines a name answers a query for it, and names that many files define are not asked for.
func TestOtherDefinitionsAnswer(t *testing.T) {
	made := madeTree()
	files := made.files["r"]
	made.tagged = map[string][]*file{}
	for _, f := range files {
		name := called.FindStringSubmatch(f.text)[1]
		made.tagged[name] = []*file{files[1], f, files[0]} // f defines it by the expressions, the others by ctags alone
	}
	for _, many := range []bool{false, true} {
		if many {
			for name, in := range made.tagged {
				made.tagged[name] = append(in, files[2], files[3])
			}
		}
		asked := 0
		for _, q := range generate(made) {
			if q.kind != definitionKind && q.kind != splitKind {
				if len(q.targets) != 1 {
					t.Errorf("%+v has other targets than that of its rule", q)
				}
				continue
			}
			asked++
			if others := q.targets[1:]; !slices.IsSorted(others) || len(q.targets) > mostDefining || slices.Contains(others, q.targets[0]) ||
				!slices.Contains(q.targets, files[0].name()) || !slices.Contains(q.targets, files[1].name()) {
				t.Errorf("%+v is not answered by its own file, %s and %s", q, files[0].name(), files[1].name())
			}
		}
		if want := map[bool]int{false: 12, true: 0}[many]; asked != want {
			t.Errorf("%d names are asked for, not %d", asked, want)
		}
	}
}
