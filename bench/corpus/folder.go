package corpus

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// writtenQueries is the file of a corpus's folder with queries written by hand.
const writtenQueries = "queries.txt"

// folder makes a repo of each folder in a folder.
func folder(dir string) (Corpus, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return Corpus{}, fmt.Errorf("finding the folder %s: %w", dir, err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return Corpus{}, fmt.Errorf("listing the repos of a folder: %w", err)
	}
	c := Corpus{Name: filepath.Base(dir)}
	for _, e := range entries {
		if e.IsDir() {
			c.Repos = append(c.Repos, Repo{e.Name(), filepath.Join(dir, e.Name())})
		}
	}
	if len(c.Repos) == 0 {
		return Corpus{}, fmt.Errorf("no folders in %s: each folder in it is a repo", dir)
	}
	c.Queries, err = readQueries(filepath.Join(dir, writtenQueries))
	return c, err
}

// readQueries reads lines of a bucket, a tab and a query. Lines that begin with # are comments. A
// file that does not exist has no queries.
func readQueries(path string) (list []Query, err error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading queries: %w", err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for n := 1; lines.Scan(); n++ {
		line := lines.Text()
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		bucket, text, ok := strings.Cut(line, "\t")
		if !ok || bucket == "" || text == "" {
			return nil, fmt.Errorf("%s:%d: want a bucket, a tab and a query, found %q", path, n, line)
		}
		list = append(list, Query{Bucket: Bucket(bucket), Written: text})
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("reading queries: %w", err)
	}
	return list, nil
}
