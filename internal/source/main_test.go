package source

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m)
}

// repo is a real Git repository in a temporary folder.
type repo struct {
	t   testing.TB
	dir string
}

func newRepo(t testing.TB) *repo {
	t.Helper()
	r := &repo{t, filepath.Join(t.TempDir(), "repo")}
	if err := os.MkdirAll(r.dir, 0o755); err != nil {
		t.Fatal(err)
	}
	r.git("init", "-q", "-b", "main")
	return r
}

// git runs git in the repository and returns its output without the last newline.
func (r *repo) git(args ...string) string {
	r.t.Helper()
	return r.gitIn("", args...)
}

func (r *repo) gitIn(stdin string, args ...string) string {
	r.t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = r.dir
	cmd.Stdin = strings.NewReader(stdin)
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=/nonexistent", "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null",
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@b",
		"GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=protocol.file.allow", "GIT_CONFIG_VALUE_0=always",
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		r.t.Fatalf("git %q: %v\n%s", args, err, out)
	}
	return strings.TrimSuffix(string(out), "\n")
}

// blob stores a content and returns its name.
func (r *repo) blob(content string) string {
	r.t.Helper()
	return r.gitIn(content, "hash-object", "-w", "--stdin")
}

// commit makes a commit on a branch from lines "MODE OID PATH", without
// touching the working tree, so that any path that Git can hold works.
func (r *repo) commit(branch string, entries ...[3]string) string {
	r.t.Helper()
	r.git("read-tree", "--empty")
	var stdin strings.Builder
	for _, e := range entries {
		stdin.WriteString(e[0] + " " + e[1] + "\t" + e[2] + "\x00")
	}
	r.gitIn(stdin.String(), "update-index", "-z", "--index-info")
	commit := r.git("commit-tree", "-m", "x", r.git("write-tree"))
	r.git("update-ref", "refs/heads/"+branch, commit)
	return commit
}

// files commits plain files, given as alternating paths and contents.
func (r *repo) files(branch string, pathsAndContents ...string) string {
	r.t.Helper()
	var entries [][3]string
	for pair := range slices.Chunk(pathsAndContents, 2) {
		entries = append(entries, [3]string{"100644", r.blob(pair[1]), pair[0]})
	}
	return r.commit(branch, entries...)
}

// collect reads all documents of a source, with slices of their own.
func collect(t testing.TB, s Source) []Document {
	t.Helper()
	var docs []Document
	for d, err := range s.Documents(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		c := *d
		c.Path, c.OID = slices.Clone(d.Path), slices.Clone(d.OID)
		if d.Content != nil {
			c.Content = append([]byte{}, d.Content...)
		}
		docs = append(docs, c)
	}
	return docs
}

// names are the names of a document's branches, with commas between.
func names(s Source, d Document) string {
	var list []string
	for _, ordinal := range d.Branches {
		list = append(list, s.Branches()[ordinal].Name)
	}
	return strings.Join(list, ",")
}
