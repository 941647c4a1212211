//go:build !race

// Under the race detector, pools drop some of what they are given.

package docstore

import "testing"

func TestReadsAllocateNothing(t *testing.T) {
	c, d, err := open(small().write(t))
	if err != nil {
		t.Fatal(err)
	}
	r, buf, branches := c.NewReader(), make([]byte, 0, 1<<16), make([]uint32, 0, 8)
	read := func() {
		for doc := range d.Len() {
			blob, _ := d.Blob(doc)
			buf, _ = r.Append(buf[:0], blob, 0, 10_000)
			_, _ = r.LinesBefore(blob, 5000)
			buf, _ = d.AppendPath(buf[:0], doc)
			_, _ = d.LanguageID(doc)
			_, _ = d.BranchSet(doc)
			branches, _ = d.AppendBranches(branches[:0], doc)
			_, _ = d.OID(doc)
			_, _ = d.RepoOf(doc)
			_, _ = d.Size(doc)
			_, _ = d.FirstDoc(blob)
		}
	}
	read()                                          // opens the columns
	if n := testing.AllocsPerRun(20, read); n > 3 { // one for each document is more; the collector may empty the pool of names
		t.Errorf("%v allocations", n)
	}
}
