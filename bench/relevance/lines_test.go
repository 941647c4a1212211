package relevance

import (
	"slices"
	"strings"
	"testing"
)

// TestKnownLines: the set is as its rules say, with both kinds and halves, and one line of a kind in each file.
func TestKnownLines(t *testing.T) {
	known, err := readLines(drawnLines)
	if err != nil {
		t.Fatal(err)
	}
	type place struct {
		kind       kind
		repo, path string
	}
	seen, halves := map[place]bool{}, map[bool]int{}
	for _, k := range known {
		words := strings.Fields(k.query)
		if at := (place{k.kind, k.repo, k.path}); seen[at] || k.line < 1 || len(words) < leastWords || len(words) > mostWords || linesPerRepo[k.kind] == 0 ||
			!slices.ContainsFunc(linePins, func(p pinned) bool { return p.name == k.repo }) {
			t.Errorf("%+v", k)
		} else {
			seen[at] = true
		}
		halves[k.tuning()]++
	}
	if len(known) < 190 || halves[true] < 90 || halves[false] < 90 {
		t.Errorf("%d known lines, %d of them for tuning", len(known), halves[true])
	}
	for _, bad := range []string{"definitions\tcurl\ta.c\t1\n", "definitions\tcurl\ta.c\tone\ta b\n"} {
		if _, err := readLines(bad); err == nil {
			t.Errorf("%q is read", bad)
		}
	}
}

// lineFile is a file of a repo for the rules of known lines.
func lineFile(path, text string) *file {
	return &file{repo: "r", path: path, text: text, lower: strings.ToLower(path + "\n" + text)}
}

// TestChangedLines: a commit counts if it added few lines to one file, of which one has the most words of its subject and is there once.
func TestChangedLines(t *testing.T) {
	f := lineFile("a.c", "one\nsend the packets\nsend\ntwice sent packets\ntwice sent packets\n")
	diff := func(path string, added ...string) string {
		return "\n\ndiff --git a/" + path + " b/" + path + "\n--- a/" + path + "\n+++ b/" + path + "\n@@ -1 +1 @@\n-old\n+" + strings.Join(added, "\n+") + "\n"
	}
	for _, c := range []struct {
		log, want string
		line      int
	}{
		{"quic: send all packets" + diff("a.c", "  send the packets"), "quic send packets", 2},
		{"send packets" + diff("a.c", "send the packets", "send"), "send packets", 2},
		{"Revert send packets" + diff("a.c", "send the packets"), "", 0},
		{"send packets" + diff("a.c", "send the packets", "1", "2", "3"), "", 0},
		{"send packets" + diff("b.c", "send the packets"), "", 0},
		{"send packets" + diff("a.c", "send the packets") + diff("b.c", "1"), "", 0},
		{"send packets" + diff("a.c", "send"), "", 0},
		{"send packets" + diff("a.c", "send other packets"), "", 0},
		{"send packets" + diff("a.c", "send the packets", "packets to send"), "", 0},
		{"sent packets" + diff("a.c", "twice sent packets"), "", 0},
		{"a fix for one" + diff("a.c", "one"), "", 0},
		{"send packets quickly through heavily loaded networks" + diff("a.c", "send the packets"), "", 0},
	} {
		got := changedLines([]*file{f}, "\x00"+c.log)
		if c.want == "" && len(got) == 0 {
			continue
		}
		if len(got) != 1 || got[0] != (knownLine{changedKind, "r", "a.c", c.line, c.want}) {
			t.Errorf("%q: %+v, want line %d for %q", c.log, got, c.line, c.want)
		}
	}
}

// TestDefinedLines: a name of several words counts if its file defines it once.
func TestDefinedLines(t *testing.T) {
	f := lineFile("a.go", "")
	got := definedLines([]tag{{"readFile", f, 3}, {"read_all_files", f, 4}, {"read", f, 5}, {"readTwice", f, 6}, {"ReadTwice", f, 7}, {"read2Files", f, 8}, {"thisOrThat", f, 9}, {"aNameOfFarTooManyWords", f, 10}})
	want := []knownLine{{definedKind, "r", "a.go", 3, "read file"}, {definedKind, "r", "a.go", 4, "read all files"}}
	if !slices.Equal(got, want) {
		t.Errorf("%+v", got)
	}
}

// TestSampleLines: one line of each file, in an order that nobody chooses, and only where more lines have a word than a page shows.
func TestSampleLines(t *testing.T) {
	files := []*file{lineFile("few.c", strings.Repeat("read\n", leastLines-1))}
	known := []knownLine{{definedKind, "r", "few.c", 1, "read file"}}
	for name := range strings.FieldsSeq("a b c d e f g h i j k l m n o p") {
		files = append(files, lineFile(name+".c", strings.Repeat("file\n", leastLines)))
		known = append(known, knownLine{definedKind, "r", name + ".c", 1, "read file"}, knownLine{definedKind, "r", name + ".c", 2, "read file"})
	}
	got := sampleLines(slices.Clone(known), files)
	paths := map[string]bool{}
	for _, k := range got {
		paths[k.path] = true
	}
	if len(got) != linesPerRepo[definedKind] || len(paths) != len(got) || paths["few.c"] {
		t.Errorf("%+v", got)
	}
	slices.Reverse(known)
	if again := sampleLines(known, files); !slices.Equal(again, got) {
		t.Errorf("in another order: %+v, want %+v", again, got)
	}
}

// TestShareOf: the share of known lines among those shown, and first.
func TestShareOf(t *testing.T) {
	tuned, other := linePins[0].name, linePins[1].name
	known := []knownLine{{changedKind, tuned, "a", 5, ""}, {definedKind, tuned, "b", 6, ""}, {definedKind, other, "c", 7, ""}, {changedKind, tuned, "d", 8, ""}, {changedKind, tuned, "e", 9, ""}}
	shown := [][]int{{5, 1}, {1, 6}, {7}, nil, {1, 2, 3}}
	for _, c := range []struct {
		of           kind
		tuning       bool
		n            int
		among, first float64
	}{{"", true, 4, 50, 25}, {definedKind, true, 1, 100, 0}, {"", false, 1, 100, 100}, {changedKind, false, 0, 0, 0}} {
		if n, among, first := shareOf(known, shown, c.of, c.tuning); n != c.n || among != c.among || first != c.first {
			t.Errorf("%q, tuning %t: %d, %g, %g", c.of, c.tuning, n, among, first)
		}
	}
}
