package corpus

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestFolder: each folder in a folder is a repo, and the queries beside them are asked as they stand.
func TestFolder(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "trees")
	write(t, filepath.Join(dir, "b", "x", "y"), "four")
	write(t, filepath.Join(dir, "b", ".git", "config"), "not indexed")
	write(t, filepath.Join(dir, "a", "z"), "3 B")
	write(t, filepath.Join(dir, "queries.txt"), "# a comment\n\nphrase\t\"no such file\"\nusage\tf:a\tb\n")
	c, err := Find(t.Context(), dir, "", 0)
	if err != nil {
		t.Fatal(err)
	}
	if want := []Repo{{"a", filepath.Join(dir, "a")}, {"b", filepath.Join(dir, "b")}}; c.Name != "trees" || !slices.Equal(c.Repos, want) {
		t.Errorf("got %+v, want the repos %+v of trees", c, want)
	}
	if files, bytes, err := c.Bytes(t.Context()); files != 2 || bytes != 7 || err != nil {
		t.Errorf("%d files of %d bytes (%v), want 2 of 7", files, bytes, err)
	}
	var texts []string
	for _, q := range c.Queries {
		texts = append(texts, string(q.Bucket)+": "+q.Text())
	}
	if want := []string{`phrase: "no such file"`, "usage: f:a\tb"}; !slices.Equal(texts, want) {
		t.Errorf("queries %q, want %q", texts, want)
	}
	if got := BucketsOf(c.Queries); !slices.Equal(got, []Bucket{"phrase", "usage"}) {
		t.Errorf("buckets %q", got)
	}
}

func TestFolderErrors(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "a", "z"), "text")
	write(t, filepath.Join(dir, "queries.txt"), "usage f:a\n")
	if _, err := folder(dir); err == nil || !strings.Contains(err.Error(), "queries.txt:1: want a bucket, a tab and a query") {
		t.Errorf("a line without a tab: %v", err)
	}
	if _, err := folder(filepath.Join(dir, "a")); err == nil {
		t.Error("a folder without folders is a corpus")
	}
	if _, err := folder(filepath.Join(dir, "none")); err == nil {
		t.Error("a folder that does not exist is a corpus")
	}
}

// TestUnseenQueries: the queries for the eight repos can be read, and there are seventy different ones.
func TestUnseenQueries(t *testing.T) {
	list, err := readQueries(filepath.Join("..", "unseen", "queries.txt"))
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, q := range list {
		seen[q.Text()] = true
	}
	if len(list) != 70 || len(seen) != 70 {
		t.Errorf("%d queries, %d different ones, want 70", len(list), len(seen))
	}
}
