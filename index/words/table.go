package words

import (
	"encoding/binary"
	"math/bits"
	"math/rand/v2"
)

// table numbers words in the order in which they come: a flat hash map from words to
// numbers, whose bytes lie in one arena, as in prompp's index writer. The hash has a random
// seed, so that nobody can choose words that collide; what is numbered how does not
// depend on it.
type table struct {
	slots   []slot // a power of two, at most half of them taken
	arena   [][]byte
	left    []byte   // of the arena's last chunk
	offsets []uint32 // of each word in the arena: its length and its bytes
	seed    uint64
}

// slot has a word's number plus 1, 0 where there is none, and its hash.
type slot struct{ hash, number uint32 }

const (
	arenaShift = 20 // chunks of 1 MiB
	arenaChunk = 1 << arenaShift
	leastSlots = 1 << 12
)

func newTable() table {
	return table{slots: make([]slot, leastSlots), seed: rand.Uint64()}
}

func (t *table) len() int { return len(t.offsets) }

// memory is about how many bytes the table takes.
func (t *table) memory() int64 {
	return int64(len(t.slots))*8 + int64(t.chunks())*arenaChunk + int64(len(t.offsets))*4
}

// chunks is the number of chunks of the arena in use.
func (t *table) chunks() int {
	if len(t.offsets) == 0 {
		return 0
	}
	return int(t.offsets[len(t.offsets)-1]>>arenaShift) + 1
}

// add returns the number of a word, a new one if it has none yet.
func (t *table) add(hash uint32, word []byte) uint32 {
	mask := uint32(len(t.slots) - 1)
	for i := hash & mask; ; i = (i + 1) & mask {
		s := &t.slots[i]
		if s.number == 0 {
			*s = slot{hash, uint32(len(t.offsets)) + 1}
			t.keep(word)
			if len(t.offsets)*2 > len(t.slots) {
				t.grow()
			}
			return uint32(len(t.offsets)) - 1
		}
		if s.hash == hash && string(t.word(s.number-1)) == string(word) {
			return s.number - 1
		}
	}
}

// keep copies a word into the arena.
func (t *table) keep(word []byte) {
	chunk, at := 0, 0
	if n := len(t.offsets); n > 0 {
		last := t.offsets[n-1]
		chunk, at = int(last>>arenaShift), int(last%arenaChunk)
		at += 1 + int(t.arena[chunk][at])
		if at+1+len(word) > arenaChunk {
			chunk, at = chunk+1, 0
		}
	}
	if chunk == len(t.arena) {
		t.arena = append(t.arena, make([]byte, arenaChunk))
	}
	t.arena[chunk][at] = uint8(len(word))
	copy(t.arena[chunk][at+1:], word)
	t.offsets = append(t.offsets, uint32(chunk<<arenaShift|at))
}

// word returns the bytes of a word by its number.
func (t *table) word(number uint32) []byte {
	off := t.offsets[number]
	chunk := t.arena[off>>arenaShift][off%arenaChunk:]
	return chunk[1 : 1+chunk[0]]
}

func (t *table) grow() {
	old := t.slots
	t.slots = make([]slot, 2*len(old))
	mask := uint32(len(t.slots) - 1)
	for _, s := range old {
		if s.number == 0 {
			continue
		}
		i := s.hash & mask
		for t.slots[i].number != 0 {
			i = (i + 1) & mask
		}
		t.slots[i] = s
	}
}

// reset forgets all words and keeps the memory.
func (t *table) reset() {
	clear(t.slots)
	t.offsets = t.offsets[:0]
}

// head returns the first eight bytes of a word, or as many as it has, the first lowest.
// Text begins with the word and may go on behind it.
func head(text []byte, n int) uint64 {
	if len(text) >= 8 {
		x := binary.LittleEndian.Uint64(text)
		if n < 8 {
			x &= 1<<(8*n) - 1
		}
		return x
	}
	x := uint64(0)
	for i := range min(n, len(text)) {
		x |= uint64(text[i]) << (8 * i)
	}
	return x
}

// hash hashes a word with that head by folded multiplications.
func (t *table) hash(word []byte, head uint64) uint64 {
	h := fold(head^t.seed, uint64(len(word))^0x9e3779b97f4a7c15)
	for at := 8; at < len(word); at += 8 {
		h = fold(binary.LittleEndian.Uint64(word[min(at, len(word)-8):])^h, 0xd1342543de82ef95)
	}
	return h
}

func fold(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a, b)
	return hi ^ lo
}
