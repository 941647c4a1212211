package gitsource

import (
	"encoding/hex"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/trawl-search/trawl/index/docstore"

	"github.com/trawl-search/trawl/internal/gitsource/gitsourcetest"
)

// oddObjects are repositories with objects that today's git does not write. Each is made of a
// repository with a file and the raw name of its content.
var oddObjects = []struct {
	what  string
	write func(r *gitsourcetest.Repo, blob string) (tree, commit string) // one of them may be ""
	// refused is the check that does not let it into an index, "" if there is none.
	refused string
}{
	{what: "a long line in .gitattributes", write: file(".gitattributes", "# "+strings.Repeat("a", 3000)+"\n")},
	{what: "odd .gitmodules", write: file(".gitmodules", "[submodule \"../x\"]\n\tpath = -p\n\turl = -u\n\tupdate = !sh\n")},
	{what: ".gitmodules that cannot be read", write: file(".gitmodules", "[\x00")},
	{what: ".gitmodules that is a folder", write: func(r *gitsourcetest.Repo, blob string) (string, string) {
		return "40000 .gitmodules\x00" + object(r, "tree", "100644 a\x00"+blob) + "100644 a\x00" + blob, ""
	}},
	{what: ".gitattributes that is a link", write: tree("120000 .gitattributes\x00%[1]s100644 a\x00%[1]s")},
	{what: "modes with a leading zero, and of the group", write: tree("0100664 a\x00%[1]s100600 b\x00%[1]s")},
	{what: "a submodule without a commit", write: tree("100644 a\x00%[1]s160000 b\x00" + strings.Repeat("\x00", 20))},
	{what: "a folder .git", write: func(r *gitsourcetest.Repo, blob string) (string, string) {
		return "40000 .git\x00" + object(r, "tree", "100644 a\x00"+blob) + "100644 a\x00" + blob, ""
	}},
	{what: "a commit without people", write: commit("\n\nx\n")},
	{what: "a commit with two authors, and bad dates", write: commit("\nauthor a 01 +0\nauthor <a> <b> 99999999999999999999 +9999999\ncommitter a\n\nx\n")},
	{what: "a commit whose names and dates run together", write: commit("\nauthor a <a>1 +0000\ncommitter a <a>1 +051800\n\nx\n")},
	{what: "an entry .GIT", write: file(".GIT", "x")},
	{what: "a commit with a zero in its message", write: commit("\nauthor a <a> 1 +0000\ncommitter a <a> 1 +0000\n\nx\x00y\n")},

	{what: "an entry ..", write: tree("100644 ..\x00%[1]s100644 a\x00%[1]s"), refused: "hasDotdot"},
	{what: "an entry .", write: tree("100644 .\x00%[1]s100644 a\x00%[1]s"), refused: "hasDot"},
	{what: "an entry with a slash", write: tree("100644 a\x00%[1]s100644 a/b\x00%[1]s"), refused: "fullPathname"},
	{what: "two entries of one name", write: tree("100644 a\x00%[1]s100644 a\x00%[1]s"), refused: "duplicateEntries"},
	{what: "a tree out of order", write: tree("100644 b\x00%[1]s100644 a\x00%[1]s"), refused: "treeNotSorted"},
}

func file(name, content string) func(*gitsourcetest.Repo, string) (string, string) {
	return func(r *gitsourcetest.Repo, blob string) (string, string) {
		return fmt.Sprintf("100644 %s\x00%s100644 a\x00%s", name, rawName(r.Blob(content)), blob), ""
	}
}

func tree(entries string) func(*gitsourcetest.Repo, string) (string, string) {
	return func(_ *gitsourcetest.Repo, blob string) (string, string) { return fmt.Sprintf(entries, blob), "" }
}

func commit(rest string) func(*gitsourcetest.Repo, string) (string, string) {
	return func(r *gitsourcetest.Repo, _ string) (string, string) {
		return "", "tree " + r.Git("rev-parse", "main^{tree}") + rest
	}
}

// object writes an object as it is, and returns its raw name.
func object(r *gitsourcetest.Repo, kind, content string) string {
	return rawName(r.GitIn(content, "hash-object", "-w", "-t", kind, "--literally", "--stdin"))
}

// nameOf is the inverse of rawName.
func nameOf(raw string) string { return hex.EncodeToString([]byte(raw)) }

func rawName(oid string) string {
	raw, _ := hex.DecodeString(oid)
	return string(raw)
}

// TestFetchTakesWhatGitClones: git fsck has objections to repositories that everybody clones. Only
// those count that protect the index, and they are final and say what to do.
func TestFetchTakesWhatGitClones(t *testing.T) {
	for _, tt := range oddObjects {
		t.Run(tt.what, func(t *testing.T) {
			r := gitsourcetest.New(t)
			r.Files("main", "a", "1")
			tree, commit := tt.write(r, rawName(r.Blob("1")))
			if commit == "" {
				commit = "tree " + nameOf(object(r, "tree", tree)) + "\nauthor a <a> 1 +0000\ncommitter a <a> 1 +0000\n\nx\n"
			}
			r.Git("update-ref", "refs/heads/main", nameOf(object(r, "commit", commit)))
			r.Git("clone", "-q", "--bare", ".", "clone")
			f, mirror := newFetcher(t, local(r)), filepath.Join(t.TempDir(), "m")
			if tt.refused == "" {
				if got := fetchAll(t, f, mirror, r.Dir); got["a@main"] != "1" {
					t.Errorf("%.200q", got)
				}
				return
			}
			_, err := f.Fetch(t.Context(), mirror, r.Dir, []docstore.Branch{{Name: "main"}}, nil)
			wantFailure(t, err, Refused, tt.refused)
			wantFailure(t, err, Refused, "make it anew")
		})
	}
}
