package ngram

import (
	"slices"
	"testing"
)

func TestClasses(t *testing.T) {
	members := map[uint64]string{}
	for c := range 128 {
		class := uint64(asciiClass[c])
		if c >= ' ' && c < 127 {
			members[class] += string(rune(c))
		}
	}
	for c := range letters {
		if got, want := members[uint64(c)], string([]byte{byte('A' + c), byte('a' + c)}); got != want {
			t.Errorf("class %d holds %q, want %q", c, got, want)
		}
	}
	shared := 0
	for class, text := range members {
		if class >= letters && len(text) > 1 {
			shared += len(text)
		}
	}
	if len(members) != 62 || shared != 11 {
		t.Errorf("%d classes of printable bytes with %d bytes sharing one, want 62 and 11", len(members), shared)
	}
	for c, want := range map[byte]string{'\n': "\n", '\t': "\t", '\r': "\t", 0: "\t", 127: "\t"} {
		if asciiClass[c] != asciiClass[want[0]] {
			t.Errorf("%q is not classed with %q", c, want)
		}
	}
}

// The IDs are part of the shard format: these must not change without a new version.
func TestIDsAreStable(t *testing.T) {
	if Space != 607400 {
		t.Errorf("Space = %d", Space)
	}
	for window, want := range map[string]ID{
		"abc": 0<<12 | 1<<6 | 2, "zz9": 25<<12 | 25<<6 | 35, " \n\t": 36<<12 | 37<<6 | 38,
		"!?~": 63<<12 | 63<<6 | 61,
	} {
		if got, ok := threeUnits(rune(window[0]), rune(window[1]), rune(window[2])); !ok || got != want {
			t.Errorf("ID of %q = %d, want %d", window, got, want)
		}
	}
	one, _ := oneUnit('中')
	two, _ := twoUnits('中', '文')
	three, _ := threeUnits('中', 'a', '文')
	if got, want := []ID{one, two, three}, []ID{532483, 507854, 562622}; !slices.Equal(got, want) {
		t.Errorf("IDs of runes are %d, want %d", got, want)
	}
	for window, want := range map[string]ID{"Aaa": titleBase, "Abc": titleBase + 28, "Zzz": runesBase - 1} {
		if got, ok := titleWindow(window); !ok || got != want {
			t.Errorf("title ID of %q = %d, %v, want %d", window, got, ok, want)
		}
	}
	for _, window := range []string{"abc", "ABc", "AbC", "A1c", "[bc", "Ab["} {
		if _, ok := titleWindow(window); ok {
			t.Errorf("%q counts as title case", window)
		}
	}
}
