package format_test

import (
	"encoding/binary"
	"maps"
	"math/bits"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/trawl-search/trawl/index/eliasfano"
)

// counts returns the counts that the tables refer to: the fields of CINF, DINF
// and WINF, and the lengths of sections.
func counts(t *testing.T, s spec, sh *shard) map[string]uint64 {
	t.Helper()
	counts, _ := s.fixed(t, "CINF", sh.sections["CINF"])
	docs, _ := s.fixed(t, "DINF", sh.sections["DINF"])
	words, _ := s.fixed(t, "WINF", sh.sections["WINF"])
	maps.Copy(counts, docs)
	maps.Copy(counts, words)
	counts["word blocks"] = (uint64(le.Uint32(sh.sections["WTAB"])) - counts["part lists"] + 31) / 32
	counts["name units"] = (docs["names"] + 4095) / 4096
	for tag, data := range sh.sections {
		counts["length of "+tag] = uint64(len(data))
	}
	for _, name := range []string{"languages", "sets"} {
		width := uint64(0)
		for n := docs[name]; n > 1 && 1<<(8*width) < n; {
			width++
		}
		counts["width of "+name] = width + width/3 // three bytes are not a width
	}
	return counts
}

// eval evaluates "a + b" over counts and numbers.
func eval(t *testing.T, expr string, counts map[string]uint64) (sum uint64) {
	t.Helper()
	for term := range strings.SplitSeq(expr, " + ") {
		n, ok := counts[term]
		if !ok {
			v, err := strconv.ParseUint(term, 10, 64)
			if err != nil {
				t.Fatalf("FORMAT.md counts by %q", term)
			}
			n = v
		}
		sum += n
	}
	return sum
}

// readList decodes a list as in section 4, without directory and samples, and
// returns the bytes after it.
func readList(t *testing.T, data []byte) (values []uint64, universe uint64, rest []byte) {
	t.Helper()
	all := data
	n, used := binary.Uvarint(data)
	universe, more := binary.Uvarint(data[used:])
	data = data[used+more:]
	if n > 0 {
		l := uint64(max(bits.Len64(universe/n), 1) - 1)
		h := n + (universe-1)>>l + 1
		low, high := data[:(n*l+7)/8], data[(n*l+7)/8:]
		bit := func(p []byte, i uint64) uint64 { return uint64(p[i/8]>>(i%8)) & 1 }
		for i := uint64(0); uint64(len(values)) < n; i++ {
			if bit(high, i) == 0 {
				continue
			}
			k := uint64(len(values))
			v := (i - k) << l
			for b := range l {
				v |= bit(low, k*l+b) << b
			}
			values = append(values, v)
		}
		size := (h + 63) / 64 * 8
		if h > 512 {
			size += 4 * ((h+511)/512 + (n+511)/512 + (h-n+511)/512)
		}
		data = high[size:]
	}
	list, taken, err := eliasfano.Open(all)
	if err != nil || taken != len(all)-len(data) || list.Len() != len(values) {
		t.Fatalf("a list of %d values in %d bytes by FORMAT.md is one of %d in %d: %v", len(values), len(all)-len(data), list.Len(), taken, err)
	}
	for i, v := range values {
		if list.At(i) != v {
			t.Fatalf("value %d is %d by FORMAT.md, %d by the code", i, v, list.At(i))
		}
	}
	return values, universe, data
}

func TestSpecOfLists(t *testing.T) {
	s, sh := readSpec(t), sample(t)
	n := counts(t, s, sh)
	for _, heading := range []string{"Lists of content", "Lists of documents", "Lists of words"} {
		for _, row := range s.rows(t, heading) {
			values, universe, rest := readList(t, sh.sections[row[0]])
			if want := eval(t, row[1], n); uint64(len(values)) != want {
				t.Errorf("%s has %d values, FORMAT.md says %s = %d", row[0], len(values), row[1], want)
			}
			if want := eval(t, row[2], n); universe != want {
				t.Errorf("%s is below %d, FORMAT.md says %s = %d", row[0], universe, row[2], want)
			}
			if len(rest) != 0 {
				t.Errorf("%s has %d bytes more", row[0], len(rest))
			}
		}
	}
}

func TestSpecOfArrays(t *testing.T) {
	s, sh := readSpec(t), sample(t)
	n := counts(t, s, sh)
	for _, row := range s.rows(t, "Arrays of documents") {
		items, width := eval(t, row[1], n), eval(t, row[2], n)
		if got := uint64(len(sh.sections[row[0]])); got != items*width || items == 0 || width == 0 {
			t.Errorf("%s has %d bytes, FORMAT.md says %d items of %d", row[0], got, items, width)
		}
	}
}

var repeated = regexp.MustCompile(`^\((.+)\) × (\w+)$`)

// record decodes one record by a table. values has the numbers of its fields,
// and those from other tables. It returns the bytes after the record.
func (s spec) record(t *testing.T, heading string, data []byte, values map[string]uint64, omitted ...string) (strs map[string][]string, lists map[string][]uint64, rest []byte) {
	t.Helper()
	strs, lists = map[string][]string{}, map[string][]uint64{}
	var field func(kind, name string)
	field = func(kind, name string) {
		var v uint64
		switch kind {
		case "u8":
			v, data = uint64(data[0]), data[1:]
		case "u32":
			v, data = uint64(le.Uint32(data)), data[4:]
		case "u64":
			v, data = le.Uint64(data), data[8:]
		case "uvarint", "string":
			var n int
			v, n = binary.Uvarint(data)
			data = data[n:]
			if kind == "string" {
				strs[name] = append(strs[name], string(data[:v]))
				data = data[v:]
			}
		case "list":
			lists[name], _, data = readList(t, data)
		default:
			m := repeated.FindStringSubmatch(kind)
			if m == nil {
				t.Fatalf("%s: field %s has type %q", heading, name, kind)
			}
			for range values[m[2]] {
				for part := range strings.SplitSeq(m[1], ", ") {
					field(part, name)
				}
			}
			return
		}
		values[name] = v
	}
	for _, row := range s.rows(t, heading) {
		if !slices.Contains(omitted, row[1]) {
			field(row[0], row[1])
		}
	}
	return strs, lists, data
}

func TestSpecOfRecords(t *testing.T) {
	s, sh := readSpec(t), sample(t)
	n := counts(t, s, sh)
	each := func(tag, offsets, heading string, check func(i int, strs map[string][]string, values map[string]uint64)) {
		ends, _, _ := readList(t, sh.sections[offsets])
		for i := range len(ends) - 1 {
			values := map[string]uint64{}
			strs, _, rest := s.record(t, heading, sh.sections[tag][ends[i]:ends[i+1]], values)
			if len(rest) != 0 {
				t.Errorf("%s: record %d has %d bytes more", tag, i, len(rest))
			}
			check(i, strs, values)
		}
	}
	each("REPO", "ROFF", "Record of REPO", func(i int, strs map[string][]string, values map[string]uint64) {
		if strs["name"][0] != []string{"a", "b"}[i] || values["branches"] != []uint64{3, 1}[i] ||
			values["flags"] != []uint64{2, 0}[i] || values["generation"] != []uint64{0, 300}[i] || values["oid length"] != 20 {
			t.Errorf("repo %d: %v %v", i, strs, values)
		}
	})
	each("BSET", "BSOF", "Record of BSET", func(i int, _ map[string][]string, values map[string]uint64) {
		// The sets are {0, 2} and {0}. The number that is left belongs to the
		// last branch.
		if values["count"] != []uint64{2, 1}[i] || values["branch"] != []uint64{1, 0}[i] {
			t.Errorf("set %d: %v", i, values)
		}
	})
	strs, _, rest := s.record(t, "Record of LNAM", sh.sections["LNAM"], n)
	if got := strings.Join(strs["language"], ","); got != ",C,Go" || len(rest) != 0 {
		t.Errorf("languages %q, %d bytes more", got, len(rest))
	}
}
