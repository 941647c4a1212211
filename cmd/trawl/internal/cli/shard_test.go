package cli

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/trawl-search/trawl/index/format"
)

// buildPond builds a shard of a small folder and returns its path.
func buildPond(t *testing.T) string {
	t.Helper()
	folder := filepath.Join(t.TempDir(), "pond")
	for path, content := range map[string]string{
		"fish.go":  "package pond\n\ntype Fish struct{ Name string }\n",
		"net/a.py": "def haul():\n    return fish\n",
		"pic.bin":  "fish\x00",
	} {
		full := filepath.Join(folder, path)
		if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(full, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	out := filepath.Join(t.TempDir(), "pond.trawl")
	exit, report, errs := run(t, nil, "shard", "build", "--out", out, folder)
	if exit != 0 || !strings.HasPrefix(report, "3 documents, 1 found by name only\n") {
		t.Fatalf("build: exit %d: %s%s", exit, report, errs)
	}
	for _, want := range []string{" bytes read (", " shard bytes (", " seconds ("} {
		if !strings.Contains(report, want) {
			t.Errorf("%q is not in the report:\n%s", want, report)
		}
	}
	if left, _ := filepath.Glob(out + "?*"); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	return out
}

func TestShardSearch(t *testing.T) {
	shard := buildPond(t)
	for query, want := range map[string]string{
		"fish":                "2 matches in 2 files",
		"case:yes c:Fish":     "     3  type Fish struct{ Name string }",
		"lang:python haul":    "pond net/a.py",
		"type:repo lang:go":   "in 3 files",
		"f:pic":               "found by name only: binary",
		`re\w+ fish f:\.py$`:  "     2      return fish",
		"nothing like this":   "0 matches in 0 files",
		"-lang:go -f:bin c:a": "net/a.py",
	} {
		exit, out, errs := run(t, nil, "shard", "search", shard, "--", query)
		if exit != 0 || !strings.Contains(out, want) {
			t.Errorf("%s: exit %d, no %q in\n%s%s", query, exit, want, out, errs)
		}
	}
	exit, _, errs := run(t, nil, "shard", "search", shard, "fish (net")
	if exit != 1 || !strings.Contains(errs, "fish (net\n       ^") {
		t.Errorf("a syntax error: exit %d: %s", exit, errs)
	}
}

func TestShardVerifyAndDump(t *testing.T) {
	shard := buildPond(t)
	if exit, out, errs := run(t, nil, "shard", "verify", shard); exit != 0 || !strings.Contains(out, "sound: 3 documents") {
		t.Errorf("verify: exit %d: %s%s", exit, out, errs)
	}
	if exit, out, errs := run(t, nil, "shard", "dump", shard); exit != 0 || !strings.Contains(out, "repo pond: 3 documents") || strings.Contains(out, "rank") {
		t.Errorf("dump: exit %d: %s%s", exit, out, errs)
	}
	ranked := filepath.Join("..", "..", "..", "..", "index", "testdata", fmt.Sprintf("v%d", format.Version), "ranked.trawl")
	if exit, out, errs := run(t, nil, "shard", "dump", ranked); exit != 0 || !strings.Contains(out, "rank 55 of 100") {
		t.Errorf("dump of a shard with ranks: exit %d: %s%s", exit, out, errs)
	}
	content, err := os.ReadFile(shard)
	if err != nil {
		t.Fatal(err)
	}
	content[len(content)/2] ^= 1
	if err := os.WriteFile(shard, content, 0o644); err != nil {
		t.Fatal(err)
	}
	exit, _, errs := run(t, nil, "shard", "verify", shard)
	if exit != 1 || !strings.Contains(errs, shard) || !strings.Contains(errs, "section") {
		t.Errorf("verify of a damaged shard: exit %d: %s", exit, errs)
	}
}

// TestShardIsAFile: what is no file is named as such at once. Opening a pipe would wait for a writer.
func TestShardIsAFile(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{pipe, "/dev/null", t.TempDir()} {
		for _, args := range [][]string{{"verify", path}, {"dump", path}, {"search", path, "x"}} {
			if exit, out, errs := run(t, nil, append([]string{"shard"}, args...)...); exit != 1 || out != "" || !strings.Contains(errs, path+": not a regular file") {
				t.Errorf("%v: exit %d: %s%s", args, exit, out, errs)
			}
		}
	}
}

func TestShardBuildLeavesNothingOfAFailure(t *testing.T) {
	dir := t.TempDir()
	out := filepath.Join(dir, "x.trawl")
	if exit, _, errs := run(t, nil, "shard", "build", "--out", out, filepath.Join(dir, "nowhere")); exit != 1 || !strings.Contains(errs, "nowhere") {
		t.Errorf("a folder that is not there: exit %d: %s", exit, errs)
	}
	if exit, _, errs := run(t, nil, "shard", "build", "--out", out, "--branch", "b", dir); exit != 1 || !strings.Contains(errs, "branch") {
		t.Errorf("a branch of a folder: exit %d: %s", exit, errs)
	}
	if exit, _, _ := run(t, nil, "shard", "build", dir); exit != 2 {
		t.Errorf("without --out: exit %d", exit)
	}
	if files, _ := os.ReadDir(dir); len(files) > 0 {
		t.Errorf("left behind: %v", files)
	}
}

// TestShardBuildReplacesFilesOnly: --out replaces a regular file, also behind a link, and nothing else, and leaves files beside it alone.
func TestShardBuildReplacesFilesOnly(t *testing.T) {
	source, dir := t.TempDir(), t.TempDir()
	for path, content := range map[string]string{filepath.Join(source, "a"): "fish\n", filepath.Join(dir, "file"): "old", filepath.Join(dir, "file.tmp"): "the user's"} {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for link, to := range map[string]string{"link": "file", "dangling": "nowhere", "null": "/dev/null", "loop": "loop", "tofolder": "folder"} {
		if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600), os.Mkdir(filepath.Join(dir, "folder"), 0o700)); err != nil {
		t.Fatal(err)
	}
	modes := func() (all string) {
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			all += fmt.Sprintln(e.Name(), e.Type())
		}
		return all
	}
	before := modes()
	for _, name := range []string{"pipe", "folder", "dangling", "null", "loop", "tofolder", "."} {
		if exit, _, errs := run(t, nil, "shard", "build", "--out", filepath.Join(dir, name), source); exit != 1 || !strings.Contains(errs, "not a regular file") {
			t.Errorf("--out %s: exit %d: %s", name, exit, errs)
		}
	}
	for _, name := range []string{"file", "link"} {
		if exit, _, errs := run(t, nil, "shard", "build", "--out", filepath.Join(dir, name), source); exit != 0 {
			t.Errorf("--out %s: exit %d: %s", name, exit, errs)
		}
		if exit, _, errs := run(t, nil, "shard", "verify", filepath.Join(dir, "file")); exit != 0 {
			t.Errorf("--out %s: %s", name, errs)
		}
	}
	if after := modes(); after != before {
		t.Errorf("before:\n%s\nafter:\n%s", before, after)
	}
	if content, err := os.ReadFile(filepath.Join(dir, "file.tmp")); err != nil || string(content) != "the user's" {
		t.Errorf("file.tmp is %q, %v", content, err)
	}
}
