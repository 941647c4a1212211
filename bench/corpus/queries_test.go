package corpus

import (
	"fmt"
	"path"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/trawl-search/trawl/index/query"
)

// texts is a corpus with words of every frequency.
func texts() []File {
	files := make([]File, 300)
	for i := range files {
		text := fmt.Sprintf("package common\n\nfunc shared%d(value int) error {\n\treturn uniqueword%dx + MixedCase%d + PM_SUSPEND%s\n}\n// %c日本語\n",
			i/3, i, i%7, strings.Repeat("X", i%9), 'а'+rune(i%30))
		files[i] = File{Path: fmt.Sprintf("src/dir%d/file%d.go", i%5, i), Content: []byte(text)}
	}
	return files
}

func TestSameSeedSameQueries(t *testing.T) {
	a, b, c := Sample(texts(), 7, 5), Sample(texts(), 7, 5), Sample(texts(), 8, 5)
	if !reflect.DeepEqual(a, b) {
		t.Error("the same seed gave different queries")
	}
	if reflect.DeepEqual(a, c) {
		t.Error("another seed gave the same queries")
	}
}

// TestEveryBucket: each bucket has as many queries as requested, all different,
// and every query is valid in the language of Trawl and for Go's regular
// expressions.
func TestEveryBucket(t *testing.T) {
	count := map[Bucket]int{}
	seen := map[string]bool{}
	for _, q := range Sample(texts(), 1, 5) {
		count[q.Bucket]++
		if seen[string(q.Bucket)+q.Text()] {
			t.Errorf("%s twice in %s", q.Text(), q.Bucket)
		}
		seen[string(q.Bucket)+q.Text()] = true
		if _, err := query.Parse(q.Text(), query.ParseOptions{}); err != nil {
			t.Errorf("%s: %v", q.Text(), err)
		}
		for _, p := range append([]string{q.File}, q.Patterns...) {
			if _, err := regexp.Compile(p); err != nil {
				t.Errorf("%s: %v", q.Text(), err)
			}
		}
	}
	for _, b := range Buckets() {
		if count[b] != 5 {
			t.Errorf("%s has %d queries, not 5", b, count[b])
		}
	}
}

// TestBucketsAreWhatTheySay counts files by brute force.
func TestBucketsAreWhatTheySay(t *testing.T) {
	files := texts()
	bounds := map[Bucket][2]int{Rare: {1, 1}, Mid: {2, 50}, Common: {len(files) / 7, len(files)}}
	for _, q := range Sample(files, 3, 5) {
		limit, ok := bounds[q.Bucket]
		if !ok {
			continue
		}
		n, re := 0, regexp.MustCompile(`(?i)\b`+q.Patterns[0]+`\b`)
		for _, f := range files {
			if re.Match(f.Content) {
				n++
			}
		}
		if n < limit[0] || n > limit[1] {
			t.Errorf("%s query %s matches %d files, not %v", q.Bucket, q.Patterns[0], n, limit)
		}
	}
}

// TestQueriesHaveAnAnswer covers the buckets whose queries are taken from one
// file.
func TestQueriesHaveAnAnswer(t *testing.T) {
	files := texts()
	asked := map[Bucket]int{TwoWords: 0, ThreeWords: 0, FourWords: 0, PathWord: 0, NonASCII: 0, Phrase: 0}
	for _, q := range Sample(files, 5, 5) {
		if _, ok := asked[q.Bucket]; !ok {
			continue
		}
		asked[q.Bucket]++
		if !slices.ContainsFunc(files, func(f File) bool { return matches(t, q, f) }) {
			t.Errorf("no file has all of %s", q.Text())
		}
	}
	for bucket, n := range asked {
		if n == 0 {
			t.Errorf("no query of %s", bucket)
		}
	}
}

// matches looks for the query by brute force.
func matches(t *testing.T, q Query, f File) bool {
	t.Helper()
	flags := "(?mi)"
	if q.CaseSensitive {
		flags = "(?m)"
	}
	for _, p := range q.Patterns {
		if !regexp.MustCompile(flags + p).Match(f.Content) {
			return false
		}
	}
	return regexp.MustCompile(q.File).MatchString(f.Path)
}

// TestShapes checks the form of the queries of each bucket.
func TestShapes(t *testing.T) {
	want := map[Bucket]*regexp.Regexp{
		TwoWords: regexp.MustCompile(`^(content:"\w+" ){2}case:no$`), FourWords: regexp.MustCompile(`^(content:"\w+" ){4}case:no$`),
		PathWord: regexp.MustCompile(`^content:"\w+" file:"(src|src/dir\d|dir\d)" case:no$`),
		NonASCII: regexp.MustCompile(`^content:"[^\x00-\x7f]{2,8}" case:(yes|no)$`),
	}
	files := texts()
	for _, q := range Sample(files, 4, 5) {
		if shape, ok := want[q.Bucket]; ok && !shape.MatchString(q.Text()) {
			t.Errorf("%s: %s", q.Bucket, q.Text())
		}
		if q.Bucket != RegexWord {
			continue
		}
		for _, f := range files {
			for _, match := range regexp.MustCompile("(?i)"+q.Patterns[0]).FindAll(f.Content, -1) {
				if !regexp.MustCompile(`^\w+$`).Match(match) {
					t.Errorf("%s matches %q, which is not a part of a word", q.Text(), match)
				}
			}
		}
	}
}

// TestScopesMeanTheSame compares the glob for ripgrep with the expression for
// the others.
func TestScopesMeanTheSame(t *testing.T) {
	files := texts()
	for _, q := range Sample(files, 2, 8) {
		if q.Bucket != Scoped {
			continue
		}
		for _, f := range files {
			glob, err := path.Match(q.Glob, path.Base(f.Path))
			if err != nil {
				t.Fatal(err)
			}
			if re := regexp.MustCompile(q.File).MatchString(f.Path); re != glob {
				t.Errorf("%s: glob %s says %t, expression %s says %t", f.Path, q.Glob, glob, q.File, re)
			}
		}
	}
}

func TestNothingToSampleFrom(t *testing.T) {
	for _, q := range Sample(nil, 1, 2) {
		if q.Bucket != RegexOnly {
			t.Errorf("%s from no files", q.Text())
		}
	}
}
