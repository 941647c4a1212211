package inverted

import "testing"

// TestEndReader finds random lists in ascending order with gaps, and then from the first one again.
func TestEndReader(t *testing.T) {
	random := newRandom(t)
	lists := randomWords(random, 2000, 700)
	x, err := openWords(t, writeWords(t, lists, 700))
	if err != nil {
		t.Fatal(err)
	}
	table, err := x.openedTable()
	if err != nil {
		t.Fatal(err)
	}
	ends := newEndReader(table)
	for word := 0; word < 3*len(lists); word += 1 + random.IntN(1+random.IntN(800)) {
		term := uint32(word % len(lists))
		if got, want := ends.at(term), table.find(term); got != want {
			t.Fatalf("the list of word %d is at %v, not %v", term, got, want)
		}
	}
}
