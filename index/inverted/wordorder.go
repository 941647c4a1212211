package inverted

import (
	"bytes"
	"cmp"
	"slices"
)

// lower maps capitals to lower case, and each other byte to itself.
var lower = func() (table [256]uint8) {
	for c := range table {
		table[c] = uint8(c)
		if 'A' <= c && c <= 'Z' {
			table[c] += 'a' - 'A'
		}
	}
	return table
}()

// compare is the order of the term dictionary: without case, then by bytes.
func compare(a, b []byte) int { return cmp.Or(compareFolded(a, b), bytes.Compare(a, b)) }

// compareRest is compare for words of the same prefix.
func compareRest(a, b []byte) int {
	if c := compareFolded(a[min(len(a), prefixBytes):], b[min(len(b), prefixBytes):]); c != 0 {
		return c
	}
	return bytes.Compare(a, b)
}

// sortKey has a word's number and its first eight bytes in lower case, the first byte highest. Most
// comparisons need no more, as in prompp's index writer.
type sortKey struct {
	prefix uint64
	number uint32
}

const prefixBytes = 8

// prefixOf returns the prefix of a word's key.
func prefixOf(word []byte) (prefix uint64) {
	for i := range min(len(word), prefixBytes) {
		prefix |= uint64(lower[word[i]]) << (56 - 8*i)
	}
	return prefix
}

// order returns the numbers of all words in the order of the term dictionary.
func (t *wordTable) order(keys []sortKey) []sortKey {
	keys = slices.Grow(keys[:0], t.len())
	for number := range t.places {
		word := t.word(uint32(number))
		keys = append(keys, sortKey{prefixOf(word), uint32(number)})
	}
	slices.SortFunc(keys, func(a, b sortKey) int {
		if a.prefix != b.prefix {
			return cmp.Compare(a.prefix, b.prefix)
		}
		return compareRest(t.word(a.number), t.word(b.number))
	})
	return keys
}

// compareFolded compares two texts without case.
func compareFolded(a, b []byte) int {
	for i := range min(len(a), len(b)) {
		if c := cmp.Compare(lower[a[i]], lower[b[i]]); c != 0 {
			return c
		}
	}
	return cmp.Compare(len(a), len(b))
}
