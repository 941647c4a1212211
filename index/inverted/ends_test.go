package inverted

import "testing"

// TestEndReader finds random lists one after the other where the table has them.
func TestEndReader(t *testing.T) {
	lists := randomWords(newRandom(t), 2000, 700)
	x, err := openWords(t, writeWords(t, lists, 700))
	if err != nil {
		t.Fatal(err)
	}
	table, err := x.openedTable()
	if err != nil {
		t.Fatal(err)
	}
	ends := newEndReader(table)
	for word := range uint32(len(lists)) {
		if got, want := ends.read(), table.find(word); got != want {
			t.Fatalf("the list of word %d is at %v, not %v", word, got, want)
		}
	}
}
