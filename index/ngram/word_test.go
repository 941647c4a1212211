package ngram

import (
	"bytes"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/trawl-search/trawl/internal/testrun"
)

// randomText joins pieces that matter for words: runs of all lengths, the runes that fold to
// letters, other runes, and invalid bytes.
func randomText(r *rand.Rand, size int) []byte {
	var text []byte
	for len(text) < size {
		switch r.IntN(12) {
		case 0:
			text = append(text, "\u212A"...)
		case 1:
			text = append(text, "\u017F"...)
		case 2:
			text = append(text, "é"...)
		case 3:
			text = append(text, byte(0x80+r.IntN(0x80)))
		case 4:
			text = append(text, strings.Repeat("w", 120+r.IntN(20))...)
		case 5:
			if r.IntN(20) == 0 {
				text = append(text, strings.Repeat("Long", r.IntN(3000))...)
			}
		case 6, 7:
			text = append(text, " .\n({"[r.IntN(5)])
		default:
			for range 1 + r.IntN(9) {
				text = append(text, "abcXYZ019_"[r.IntN(10)])
			}
			text = append(text, ' ')
		}
	}
	return text
}

func TestWordBits(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		text := randomText(r, r.IntN(300))
		for i := range text {
			if r.IntN(4) == 0 {
				text[i] = byte(r.IntN(256))
			}
		}
		got := WordBits(make([]uint64, len(text)/64+1), text)
		for i, c := range text {
			if want := strings.IndexByte("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz", c) >= 0; got[i/64]>>(i%64)&1 == 1 != want {
				t.Fatalf("byte %#x at %d: %v, want %v", c, i, !want, want)
			}
		}
		if want := (len(text) + 63) / 64; len(got) != want {
			t.Fatalf("%d words of bits for %d bytes, want %d", len(got), len(text), want)
		}
	}
}

// TestOpaque compares with the definition, applied rune by rune.
func TestOpaque(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 300 {
		text := randomText(r, r.IntN(5*SuperblockSize))
		var want []uint32
		for start := 0; start < len(text); {
			end, special := start, false
			for end < len(text) {
				if IsWord(text[end]) {
					end++
				} else if bytes.HasPrefix(text[end:], kelvin) {
					end, special = end+len(kelvin), true
				} else if bytes.HasPrefix(text[end:], longS) {
					end, special = end+len(longS), true
				} else {
					break
				}
			}
			if special || end-start > MaxWord {
				for s := start / SuperblockSize; s <= (end-1)/SuperblockSize; s++ {
					want = append(want, uint32(s))
				}
			}
			start = end + 1
		}
		for start := 0; start < len(text); start += SuperblockSize {
			if isData(text, start) {
				want = append(want, uint32(start/SuperblockSize))
			}
		}
		slices.Sort(want)
		want = slices.Compact(want)
		if got := AppendOpaque(nil, text); !slices.Equal(got, want) {
			t.Fatalf("%d bytes: opaque %v, want %v", len(text), got, want)
		}
		before := []uint32{uint32(r.IntN(5))} // of another blob
		if got := AppendOpaque(before, text); got[0] != before[0] || !slices.Equal(got[1:], want) {
			t.Fatalf("%d bytes: opaque %v behind %v, want %v", len(text), got, before, want)
		}
	}
}

func TestIsData(t *testing.T) {
	const (
		base64 = "Zm9vYmFyMTIzNDU2Nzg5MGFiY2RlZmdoaWprbG1ub3BxcnN0dXZ3eHl6QUJDREVG/+"
		hash   = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08\n"
		source = "func (b *Builder) writeContentBeside(w format.SectionWriter) error {\n\treturn b.x86.utf8Decode_Int32x4()\n"
		tables = "WSAEPFNOSUPPORT_ERROR_10046 = 10046\nAVPDPBUSDS_MASKED_512 uint32 = 0xffffffff\n"
	)
	for name, try := range map[string]struct {
		text string
		want bool
	}{
		"base64": {base64, true}, "hashes": {hash, true}, "source": {source, false}, "tables": {tables, false},
		"half":     {strings.Repeat(hash, 4) + strings.Repeat("a b. ", 4*len(hash)/5-8), true},
		"a little": {strings.Repeat(hash, 4) + strings.Repeat("a b. ", 7*len(hash)/5), false},
	} {
		text := []byte(strings.Repeat(try.text, 2*SuperblockSize/len(try.text)+1))
		if got := isData(text, SuperblockSize); got != try.want {
			t.Errorf("%s: data %v, want %v", name, got, try.want)
		}
		if got := isData(text[:7*dataStep], 0); got {
			t.Errorf("%s: %d bytes are data", name, 7*dataStep)
		}
	}
}

// leftToWords matches the windows that an index of words answers for.
var leftToWords = regexp.MustCompile(`^([0-9A-Za-z_]+[\x00-\x20]*|[\x00-\x20]+[0-9A-Za-z_]+)$`)

// TestExtractBetween compares with the windows of Extract that the definition keeps.
func TestExtractBetween(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	between := NewExtractor()
	for range testrun.Rounds(80, 200) {
		text := randomText(r, r.IntN(4*SuperblockSize))
		opaque := AppendOpaque(nil, text)
		isOpaque := func(at int) bool { return slices.Contains(opaque, uint32(at/SuperblockSize)) }
		// A window may also occur in places that must not be kept. To avoid depending on such
		// places, the test collects pairs of window and block, from the windows of one place at a
		// time.
		type pair struct {
			block int
			id    ID
		}
		want := map[pair]bool{}
		for at := range text {
			left := at+3 <= len(text) && leftToWords.Match(text[at:at+3])
			start := ExtendedStart(text, at)
			ofOpaque := isOpaque(at) || IsWord(text[at]) && isOpaque(start)
			if left && !ofOpaque {
				continue
			}
			for _, id := range windowsAt(text, at) {
				want[pair{at / BlockSize, id}] = true
			}
		}
		got := map[pair]bool{}
		between.ExtractBetween(text, opaque, func(superblock uint32, ids []ID, masks []uint8) {
			for i, id := range ids {
				for b := range BlocksPerSuperblock {
					if masks[i]>>b&1 == 1 {
						got[pair{int(superblock)*BlocksPerSuperblock + b, id}] = true
					}
				}
			}
		})
		for k := range want {
			if !got[k] {
				t.Fatalf("%v is missing", k)
			}
		}
		for k := range got {
			if !want[k] {
				t.Fatalf("%v is too much", k)
			}
		}
	}
}

// windowsAt returns the windows of a text that start at one place.
func windowsAt(text []byte, at int) (found []ID) {
	lo := max(0, at-8) // the runes before decide where runes start
	for _, p := range places(text[lo:min(len(text), at+12)]) {
		if p.offset == at-lo {
			found = append(found, p.id)
		}
	}
	return found
}
