package corpus

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Bounds on what is read for sampling.
const (
	sampleFiles = 2000
	sampleBytes = 256 << 10 // larger files are skipped
)

// File is one text of the sample, by its path in its repo.
type File struct {
	Path    string
	Content []byte
}

// ReadFiles reads a sample of the corpus's text files that depends only on the seed.
func ReadFiles(ctx context.Context, c Corpus, seed uint64) ([]File, error) {
	paths, err := list(ctx, c)
	if err != nil {
		return nil, err
	}
	rng := rand.New(rand.NewPCG(seed, 1<<32))
	rng.Shuffle(len(paths), func(i, j int) { paths[i], paths[j] = paths[j], paths[i] })
	var files []File
	for _, p := range paths[:min(len(paths), sampleFiles)] {
		text, err := os.ReadFile(filepath.Join(p.dir, p.path))
		if err != nil {
			return nil, fmt.Errorf("reading a file to sample from: %w", err)
		}
		if len(text) > 0 && bytes.IndexByte(text, 0) < 0 {
			files = append(files, File{filepath.ToSlash(p.path), text})
		}
	}
	return files, nil
}

// place is a file in the folder of its repo.
type place struct{ dir, path string }

func list(ctx context.Context, c Corpus) ([]place, error) {
	var paths []place
	for _, r := range c.Repos {
		err := filepath.WalkDir(r.Dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil || !d.Type().IsRegular() {
				return err
			}
			if info, err := d.Info(); err == nil && info.Size() <= sampleBytes {
				paths = append(paths, place{r.Dir, strings.TrimPrefix(path, r.Dir+string(filepath.Separator))})
			}
			return ctx.Err()
		})
		if err != nil {
			return nil, fmt.Errorf("listing %s: %w", r.Name, err)
		}
	}
	slices.SortFunc(paths, func(a, b place) int { return cmp.Or(cmp.Compare(a.dir, b.dir), cmp.Compare(a.path, b.path)) })
	return paths, nil
}

// vocabulary has words, in lower case and ascending, by how many of the sampled files have them.
type vocabulary struct{ rare, mid, common []string }

var wordText = regexp.MustCompile(`[A-Za-z_]\w{2,40}`)

// distinct returns the words of a text, in lower case and ascending.
func distinct(text []byte) []string {
	set := map[string]bool{}
	for _, w := range wordText.FindAll(text, -1) {
		set[strings.ToLower(string(w))] = true
	}
	words := make([]string, 0, len(set))
	for w := range set {
		words = append(words, w)
	}
	slices.Sort(words)
	return words
}

func newVocabulary(files []File) *vocabulary {
	df := map[string]int{}
	for _, f := range files {
		for _, w := range distinct(f.Content) {
			df[w]++
		}
	}
	v, n := &vocabulary{}, len(files)
	for w, count := range df {
		switch {
		case count == 1 && len(w) >= 8:
			v.rare = append(v.rare, w)
		case count >= max(2, n/200) && count <= max(2, n/30) && len(w) >= 5:
			v.mid = append(v.mid, w)
		case count >= n/7:
			v.common = append(v.common, w)
		}
	}
	slices.Sort(v.rare)
	slices.Sort(v.mid)
	slices.Sort(v.common)
	return v
}
