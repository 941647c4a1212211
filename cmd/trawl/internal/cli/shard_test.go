package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
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
