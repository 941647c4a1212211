package rank

import (
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestOf(t *testing.T) {
	for _, c := range []struct {
		text, match string
		want        Quality
	}{
		{"a foo b", "foo", Word},
		{"foo", "foo", Word},
		{"foo.bar()", "foo.bar", Word},
		{"food", "foo", Partial},
		{"xfoo", "foo", Partial},
		{"my_foo", "foo", Partial},
		{"xfoox", "foo", Inside},
		{"éfooé", "foo", Word}, // \b in an expression treats it the same way
		{"a(b)", "(", Word},
	} {
		i := strings.Index(c.text, c.match)
		if got := Of([]byte(c.text), i, i+len(c.match)); got != c.want {
			t.Errorf("Of(%q, %q) = %d, want %d", c.text, c.match, got, c.want)
		}
	}
}

func TestOfName(t *testing.T) {
	for _, c := range []struct {
		path, match string
		want        Name
	}{
		{"a/foo.go", "foo.go", Base},
		{"a/foo.go", "foo", Base},
		{"a/foo.go", "a/foo", Directory},
		{"foo/a.go", "foo", Directory},
		{"a/foo_test.go", "foo", BasePartial},
		{"a/xfoox.go", "foo", BaseInside},
		{"Makefile", "Makefile", Base},
		{".gitignore", ".gitignore", Base},
		{"a/foo.spec.ts", "foo", Base},
		{"a/foo.spec.ts", "foo.spec", Base},
		{"a/foo.spec.ts", "spec", BasePartial},
	} {
		i := strings.Index(c.path, c.match)
		if got := OfName([]byte(c.path), i, i+len(c.match)); got != c.want {
			t.Errorf("OfName(%q, %q) = %d, want %d", c.path, c.match, got, c.want)
		}
	}
}

// document draws a document with some terms.
func document(t *rapid.T) Document {
	d := Document{
		Length:      rapid.IntRange(0, 200).Draw(t, "length"),
		Spelled:     rapid.Bool().Draw(t, "spelled"),
		LowPriority: rapid.Bool().Draw(t, "low"),
	}
	for range rapid.IntRange(1, 5).Draw(t, "terms") {
		term := Term{Name: Name(rapid.IntRange(0, int(Base)).Draw(t, "name"))}
		if rapid.Bool().Draw(t, "content") {
			term.Content, term.Matches = Quality(rapid.IntRange(int(Inside), int(Word)).Draw(t, "quality")), rapid.IntRange(1, 1000).Draw(t, "matches")
		}
		d.Terms = append(d.Terms, term)
	}
	best := NoName
	for _, term := range d.Terms {
		best = max(best, term.Name)
	}
	d.Spelled = d.Spelled && best > Directory
	return d
}

// TestScoreIsMonotone improves one feature: the score must not fall. One more term is an improvement if the terms do not spell
// the name.
func TestScoreIsMonotone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := document(t)
		for name, better := range map[string]func(*Document){
			"content":  func(d *Document) { d.Terms[0].Content = min(d.Terms[0].Content+1, Word) },
			"name":     func(d *Document) { d.Terms[0].Name = min(d.Terms[0].Name+1, Base) },
			"matches":  func(d *Document) { d.Terms[0].Matches++ },
			"length":   func(d *Document) { d.Length = max(d.Length-1, 0) },
			"term":     func(d *Document) { d.Terms = append(d.Terms, Term{Content: Inside, Matches: 1, Name: ofSpelled(d)}) },
			"priority": func(d *Document) { d.LowPriority = false },
			"spelled":  func(d *Document) { d.Spelled = true },
			"line":     func(d *Document) { d.Together = OneLine },
			"sequence": func(d *Document) { d.Together = InSequence },
			"rank":     func(d *Document) { d.RepoRank = 100 },
		} {
			b := d
			b.Terms = slices.Clone(d.Terms)
			better(&b)
			if b.Score() < d.Score() {
				t.Fatalf("%s better, score %v not above %v", name, b.Score(), d.Score())
			}
		}
	})
}

// ofSpelled returns a place in the base name if the terms spell that.
func ofSpelled(d *Document) Name {
	if d.Spelled {
		return BaseInside
	}
	return NoName
}

// TestRepoRanksDecideLittle: the rank of a repo adds a whole number of points, at most less than half of what one match in a path adds.
func TestRepoRanksDecideLittle(t *testing.T) {
	for rank := range uint8(101) {
		if s := Repo(rank); s != math.Trunc(s) || s < 0 || s > 10 || s >= nameScore[Directory]/2 {
			t.Errorf("rank %d: %v points", rank, s)
		}
	}
	if Repo(0) != 0 || Repo(100) != 10 {
		t.Errorf("ranks add %v to %v points, want 0 to 10", Repo(0), Repo(100))
	}
}

// TestPartsAreWholeNumbers: sums of the parts are exact in any order.
func TestPartsAreWholeNumbers(t *testing.T) {
	for length := range 100 {
		for matches := range 20 {
			for quality := range Word + 1 {
				if s := Content(quality, matches, length); s != math.Trunc(s) || s < 0 {
					t.Fatalf("quality %d, %d matches, length %d: %v", quality, matches, length, s)
				}
			}
		}
	}
}

func TestSpells(t *testing.T) {
	for _, c := range []struct {
		path, covered string
		want          bool
	}{
		{"a/read_file.go", "  xxxx xxxx   ", true},
		{"a/read_file.go", "  xxxx xxx    ", false},
		{"a/read-file.go", "  xxxxxxxxx   ", true},
		{"read/file.go", "xxxx         ", false},
		{"Makefile", "xxxxxxxx", true},
		{"a/readFile.spec.ts", "  xxxxxxxx        ", true},
		{"a/.spec.ts", "   xxxx   ", true},
		{"a/", "xx", false},
		{"a/__.go", "       ", false},
	} {
		if got := Spells([]byte(c.path), func(at int) bool { return c.covered[at] == 'x' }); got != c.want {
			t.Errorf("Spells(%q, %q) = %v", c.path, c.covered, got)
		}
	}
}

// TestFileNamesTakeAllTerms: a file named after one of three words scores less for its name than one named after all of them,
// and it loses score if its priority is low.
func TestFileNamesTakeAllTerms(t *testing.T) {
	for _, c := range []struct {
		names        []Name
		score, ofLow float64
	}{
		{[]Name{Base}, 300, 300},
		{[]Name{Base, NoName, NoName}, 300, 150},
		{[]Name{Base, Directory, Directory}, 420, 210},
		{[]Name{BasePartial, BasePartial, Directory}, 620, 310},
		{[]Name{BasePartial, BasePartial, BasePartial}, 1440, 1440},
	} {
		d := Document{Spelled: true}
		for _, n := range c.names {
			d.Terms = append(d.Terms, Term{Name: n})
		}
		score := d.Score()
		d.LowPriority = true
		if ofLow := d.Score(); score != c.score || ofLow != c.ofLow {
			t.Errorf("%v: %g and %g of low priority, want %g and %g", c.names, score, ofLow, c.score, c.ofLow)
		}
	}
}

func TestAsksForLow(t *testing.T) {
	for text, want := range map[string]bool{"test": true, "_TEST.go": true, "latest": false, "": false, "a example b": true} {
		if AsksForLow(text) != want {
			t.Errorf("AsksForLow(%q) is not %v", text, want)
		}
	}
}

// TestExplain: the explanation has all parts of a score and their inputs.
func TestExplain(t *testing.T) {
	d := Document{Terms: []Term{{Content: Word, Matches: 3, Name: BasePartial}, {Content: Inside, Matches: 1}}, Length: 3, LowPriority: true}
	if got, want := d.Explain(), "whole words 3× in 12 KiB 162, a part of the file's name 80 + inside of words 1× in 12 KiB 21, halved for a test, documentation, generated or vendored file"; got != want || d.Score() != (162+80+21)/2. {
		t.Errorf("%s: %v", got, d.Score())
	}
	d.Spelled, d.Together = true, OneLine
	if got, want := d.Explain(), "whole words 3× in 12 KiB 162, a part of the file's name 80 + inside of words 1× in 12 KiB 21 + in one line 200 + spells the file's name 200, halved for a test, documentation, generated or vendored file"; got != want || d.Score() != 331.5 {
		t.Errorf("%s: %v", got, d.Score())
	}
	d.Terms[1].Name = BaseInside
	if got, want := d.Explain(), "whole words 3× in 12 KiB 162, a part of the file's name 80 + inside of words 1× in 12 KiB 21, inside the file's name 60 + in one line 200 + spells the file's name 800"; got != want || d.Score() != 1323 {
		t.Errorf("%s: %v", got, d.Score())
	}
	slices.Reverse(d.Terms)
	if got, want := d.Explain(), "whole words 3× in 12 KiB 162, a part of the file's name 80 + inside of words 1× in 12 KiB 21, inside the file's name 60 + in one line 200 + spells the file's name 800"; got != want {
		t.Errorf("the order in which terms were looked up shows: %s", got)
	}
	d = Document{Terms: []Term{{Name: BasePartial}}, Length: 3, LowPriority: true, RepoRank: 79}
	if got, want := d.Explain(), "a part of the file's name 80, halved for a test, documentation, generated or vendored file + repo rank 79 of 100 7"; got != want || d.Score() != 47 {
		t.Errorf("%s: %v", got, d.Score())
	}
}

func TestLowPriority(t *testing.T) {
	for path, want := range map[string]bool{
		"vendor/a/b.go": true, "a/vendor/b.go": true, "a/myvendor/b.go": false,
		"a_test.go": true, "a/testing.go": false, "x/a.pb.go": true, "test/a.c": true, "latest/a.c": false,
		"docs/a.c": true, "a/doc.go": false, "CHANGELOG.md": true, "src/AbcTest.java": true, "a-bench/b.c": true, "third_party/a.c": true, "x.min.js": true,
		"a/external/b.c": true, "external-dns/b.c": false, "internal/b.c": false, "dist/a.c": true, "dist.c": false, "a/distance/a.c": false,
		"x/Godeps/_workspace/a.c": true, "Pods/a/a.c": true, "3rdparty/a.c": true, "a/cache/a.c": false, "env/a.c": false,
		"README.md": true, "a/b.rst": true, "CHANGES": true, "HISTORY.txt": true, "history.ts": false, "a/md.go": false, ".md": false, "CMakeLists.txt": false,
	} {
		if got := LowPriority([]byte(path)); got != want {
			t.Errorf("LowPriority(%q) = %v, want %v", path, got, want)
		}
	}
}

// TestWholeWordsScoreAlone: matches at the starts of words change a score with whole words only if they are worth more.
func TestWholeWordsScoreAlone(t *testing.T) {
	for _, c := range []struct {
		whole, parts, insides, length int
		quality                       Quality
		matches                       int
	}{
		{0, 0, 0, 1, None, 0},
		{1, 7, 0, 1, Word, 1},
		{1, 7, 0, 3, Partial, 8}, // in long documents once is little
		{3, 0, 5, 1, Word, 3},
		{0, 2, 100, 1, Partial, 2},
		{0, 0, 3, 1, Inside, 3},
		{40, 0, 0, 1, Word, Enough},
	} {
		var counts Counts
		for quality, n := range map[Quality]int{Word: c.whole, Partial: c.parts, Inside: c.insides} {
			for range n {
				counts.Add(quality)
			}
		}
		if quality, matches := counts.Best(c.length); quality != c.quality || matches != c.matches || counts.All() != c.whole+c.parts+c.insides {
			t.Errorf("%+v: %d of quality %d count, %d in all", c, matches, quality, counts.All())
		}
	}
}

// TestMoreMatchesAreNeverWorse: one more match of any quality never lowers a score.
func TestMoreMatchesAreNeverWorse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		length := rapid.IntRange(0, 2*CountedUnits).Draw(t, "length")
		counts, before := Counts{}, 0.0
		for range rapid.IntRange(1, 30).Draw(t, "matches") {
			counts.Add(Quality(rapid.IntRange(int(Inside), int(Word)).Draw(t, "quality")))
			quality, matches := counts.Best(length)
			if now := Content(quality, matches, length); now < before {
				t.Fatalf("%v in %d: %g after %g", counts, length, now, before)
			} else {
				before = now
			}
		}
	})
}
