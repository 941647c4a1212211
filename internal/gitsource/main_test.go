package gitsource

import (
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/trawl-search/trawl/index/build"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m)
}

// collect reads all documents of a source, with slices of their own.
func collect(t testing.TB, s Source) []build.Document {
	t.Helper()
	var docs []build.Document
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
func names(s Source, d build.Document) string {
	var list []string
	for _, ordinal := range d.Branches {
		list = append(list, s.Branches()[ordinal].Name)
	}
	return strings.Join(list, ",")
}
