package docstore

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestRunsAreTheModel compares the blobs of runs of documents, and the documents of a
// language, with the result for each document.
func TestRunsAreTheModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := drawModel(t)
		_, d, err := open(m.write(t))
		if err != nil {
			t.Fatal(err)
		}
		docs, _ := m.docs()
		var runs []Run
		var want []uint32
		for doc := 0; doc < len(docs); doc++ {
			run := Run{uint32(doc), uint32(doc + rapid.IntRange(1, len(docs)-doc).Draw(t, "length"))}
			doc = int(run.To) + rapid.IntRange(0, 3).Draw(t, "gap")
			runs = append(runs, run)
			for i := run.From; i < run.To; i++ {
				want = append(want, docs[i].Blob)
			}
		}
		firsts, got, err := d.AppendBlobRuns(nil, nil, runs)
		if err != nil {
			t.Fatal(err)
		}
		for _, run := range firsts {
			for blob := run.From; blob < run.To; blob++ {
				got = append(got, blob)
			}
		}
		slices.Sort(got)
		if slices.Sort(want); !slices.Equal(got, want) {
			t.Fatalf("the documents %v have the blobs %v, want %v", runs, got, want)
		}
		languages, err := languagesOf(d)
		if err != nil {
			t.Fatal(err)
		}
		for id, name := range languages {
			found, err := d.AppendLanguageRuns(nil, uint16(id))
			if err != nil {
				t.Fatal(err)
			}
			for doc := range docs {
				in := slices.ContainsFunc(found, func(r Run) bool { return r.From <= uint32(doc) && uint32(doc) < r.To })
				if in != (docs[doc].Language == name) {
					t.Fatalf("the documents in %q are %v, and document %d is in %q", name, found, doc, docs[doc].Language)
				}
			}
		}
	})
}
