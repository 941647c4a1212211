package indextest

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/trawl-search/trawl/index/query"
)

// Engine is what Check tests: it returns what a query finds, in any order. The
// query has no type:repo.
type Engine func(q query.Q) ([]Result, error)

// Check runs the queries and compares the engine's results, including ranges,
// with the oracle's. It reports the first difference of each query with all
// that is needed to reproduce it, and stops after a few.
func Check(t testing.TB, c *Corpus, queries []Query, engine Engine) {
	t.Helper()
	NewOracle(c).Check(t, queries, engine)
}

// Check is the function Check with the oracle's corpus.
func (o *Oracle) Check(t testing.TB, queries []Query, engine Engine) {
	t.Helper()
	check(t, o.corpus, queries, func(q Query) string { return o.Compare(q.Text, engine) })
}

// check reports the results of compare.
func check(t testing.TB, c *Corpus, queries []Query, compare func(Query) string) {
	t.Helper()
	const enough = 5
	failures := 0
	for _, q := range queries {
		diff := compare(q)
		if diff == "" {
			continue
		}
		t.Errorf("corpus %s, query %d of seed %d (%s): %s\n%s", c.Name, q.Number, q.Seed, q.Kind, q.Text, diff)
		if failures++; failures == enough {
			t.Fatalf("%d queries differ from the oracle; the rest was not tried", failures)
		}
	}
}

// Compare is Oracle.Compare with a new Oracle.
func Compare(c *Corpus, text string, engine Engine) string {
	return NewOracle(c).Compare(text, engine)
}

// Compare describes how engine's answer to one query differs from the oracle's.
// The text is empty if they are equal.
func (o *Oracle) Compare(text string, engine Engine) string {
	q, diff := o.parse(text)
	if diff != "" {
		return diff
	}
	want, wantErr := o.Eval(q)
	got, gotErr := engine(q)
	if wantErr != nil || gotErr != nil {
		return differentErrors(q, gotErr, wantErr)
	}
	got = slices.Clone(got)
	sortResults(got)
	if diff := firstDifference(o.corpus, want, got); diff != "" {
		return fmt.Sprintf("tree %s\n%d documents, should be %d\n%s", q, len(got), len(want), diff)
	}
	return ""
}

// parse parses a query. diff describes why it cannot.
func (o *Oracle) parse(text string) (q query.Q, diff string) {
	q, err := query.Parse(text, query.ParseOptions{SyntaxVersion: query.MaxSyntaxVersion})
	if err == nil {
		q, err = o.Resolve(q)
	}
	if err != nil {
		return nil, fmt.Sprintf("the query is not right: %v", err)
	}
	return q, ""
}

// differentErrors compares errors, one of which may be nil.
func differentErrors(q query.Q, got, want error) string {
	if errors.Is(got, want) {
		return ""
	}
	return fmt.Sprintf("tree %s\nengine's error: %v\noracle's error: %v", q, got, want)
}

// firstDifference describes the first result that differs; both are in order.
func firstDifference(c *Corpus, want, got []Result) string {
	for i := range max(len(want), len(got)) {
		switch {
		case i == len(got):
			return "missing: " + describe(c, want[i])
		case i == len(want):
			return "too much: " + describe(c, got[i])
		case compareResults(want[i], got[i]) < 0:
			return "missing: " + describe(c, want[i])
		case compareResults(want[i], got[i]) > 0:
			return "too much: " + describe(c, got[i])
		case !slices.Equal(want[i].Content, got[i].Content) || !slices.Equal(want[i].Name, got[i].Name):
			return "other ranges: " + describe(c, got[i]) + "\n   should be: " + describe(c, want[i])
		}
	}
	return ""
}

// describe returns a result with the text of its first ranges.
func describe(c *Corpus, r Result) string {
	s := fmt.Sprintf("%s %q on %q", r.Repo, r.Path, r.Branches)
	content := contentOf(c, r)
	s += showRanges("content", content, r.Content)
	return s + showRanges("name", []byte(r.Path), r.Name)
}

func showRanges(where string, text []byte, ranges []Range) string {
	s := ""
	for i, r := range ranges {
		if i == 10 {
			return s + fmt.Sprintf(", … %d in all", len(ranges))
		}
		if r.Start < 0 || r.Start > r.End || r.End > len(text) {
			s += fmt.Sprintf(", %s [%d,%d) outside of the text", where, r.Start, r.End)
			continue
		}
		s += fmt.Sprintf(", %s [%d,%d) %.40q", where, r.Start, r.End, text[r.Start:r.End])
	}
	return s
}

func contentOf(c *Corpus, r Result) []byte {
	for _, repo := range c.Repos {
		for _, d := range repo.Documents {
			if repo.Name == r.Repo && d.Path == r.Path && slices.Contains(d.Branches, r.Branches[0]) {
				return d.Content
			}
		}
	}
	return nil
}
