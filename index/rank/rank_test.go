package rank

import (
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
		{"éfooé", "foo", Word}, // as \b in an expression sees it
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
	} {
		i := strings.Index(c.path, c.match)
		if got := OfName([]byte(c.path), i, i+len(c.match)); got != c.want {
			t.Errorf("OfName(%q, %q) = %d, want %d", c.path, c.match, got, c.want)
		}
	}
}

// TestScoreIsMonotone changes one feature for the better: the score must not fall.
func TestScoreIsMonotone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := Document{
			Content: Quality(rapid.IntRange(0, 2).Draw(t, "content")),
			Name:    Name(rapid.IntRange(0, 3).Draw(t, "name")),
			Atoms:   rapid.IntRange(1, 5).Draw(t, "atoms"),
			Matches: rapid.IntRange(0, Enough-1).Draw(t, "matches"),
		}
		d.Matched = rapid.IntRange(0, d.Atoms-1).Draw(t, "matched")
		d.LowPriority = true
		for name, better := range map[string]func(*Document){
			"content":  func(d *Document) { d.Content++ },
			"name":     func(d *Document) { d.Name++ },
			"matched":  func(d *Document) { d.Matched++ },
			"matches":  func(d *Document) { d.Matches++ },
			"priority": func(d *Document) { d.LowPriority = false },
		} {
			b := d
			better(&b)
			if b.Score() < d.Score() || b.Score() == d.Score() && d.Score() > 0 {
				t.Fatalf("%s better, score %v not above %v", name, b.Score(), d.Score())
			}
		}
	})
}

// TestCeilingIsTheMaximum draws documents: none is above its ceiling, and the
// best of its kind is at it.
func TestCeilingIsTheMaximum(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := Document{
			Name:        Name(rapid.IntRange(0, 4).Draw(t, "name")),
			LowPriority: rapid.Bool().Draw(t, "low"),
			Atoms:       rapid.IntRange(1, 7).Draw(t, "atoms"),
		}
		content := rapid.Bool().Draw(t, "content")
		if content {
			d.Content = Quality(rapid.IntRange(0, 3).Draw(t, "quality"))
		}
		if d.Content > None || d.Name > NoName {
			d.Matched, d.Matches = rapid.IntRange(0, d.Atoms).Draw(t, "matched"), rapid.IntRange(0, 1000).Draw(t, "matches")
		}
		ceiling := Ceiling(content, d.Name, d.LowPriority)
		if d.Score() > ceiling {
			t.Fatalf("%+v scores %v, the ceiling is %v", d, d.Score(), ceiling)
		}
		if content {
			d.Content = Word
		}
		if content || d.Name > NoName {
			d.Matched, d.Matches = d.Atoms, Enough
		}
		if d.Score() != ceiling {
			t.Fatalf("%+v scores %v, the ceiling of %v cannot be reached", d, d.Score(), ceiling)
		}
	})
}

func TestLowPriority(t *testing.T) {
	for path, want := range map[string]bool{
		"vendor/a/b.go": true, "a/vendor/b.go": true, "a/myvendor/b.go": false,
		"a_test.go": true, "a/testing.go": false, "x/a.pb.go": true, "test/a.c": true, "latest/a.c": false,
	} {
		if got := LowPriority([]byte(path)); got != want {
			t.Errorf("LowPriority(%q) = %v, want %v", path, got, want)
		}
		folder := path[:LowFolder([]byte(path))]
		if folder != "" && (!strings.HasSuffix(folder, "/") || !LowPriority([]byte(folder+"a.c"))) || want && folder == "" && strings.HasSuffix(path, "/a.c") {
			t.Errorf("LowFolder(%q) is %q", path, folder)
		}
	}
}
