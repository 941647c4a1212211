package inverted

import (
	"bytes"
	"encoding/binary"
	"math/bits"
)

// wordTable numbers words in the order of arrival. It is a flat hash map from words to numbers, with
// the bytes of the words in one arena, as in prompp's index writer. The hash has a random seed, so
// nobody can choose words that collide. The numbers do not depend on the seed.
type wordTable struct {
	slots  []slot // the length is a power of two, at least twice the number of words
	arena  [][]byte
	places []uint32 // of each word in the arena: see keep
	seed   uint64
}

// slot has the hash of a word and its place in the arena plus 1, or 0 if it is free.
type slot struct{ hash, place uint32 }

const (
	arenaShift = 20 // chunks of 1 MiB
	arenaChunk = 1 << arenaShift
	leastSlots = 1 << 12

	// wordHeader precedes a word in the arena: its number, and its length in a byte.
	wordHeader = 5
)

func (t *wordTable) len() int { return len(t.places) }

// memory returns about how many bytes the table takes.
func (t *wordTable) memory() int64 {
	return int64(len(t.slots))*8 + int64(t.chunks())*arenaChunk + int64(len(t.places))*4
}

// chunks returns the number of chunks of the arena in use.
func (t *wordTable) chunks() int {
	if len(t.places) == 0 {
		return 0
	}
	return int(t.places[len(t.places)-1]>>arenaShift) + 1
}

// fetch reads what add will read for a word with a hash. If it is called for many words in a row,
// the processor loads them concurrently, while add would wait for each.
func (t *wordTable) fetch(hash uint32) uint32 {
	s := t.slots[hash&uint32(len(t.slots)-1)]
	if s.place == 0 {
		return 0
	}
	return uint32(t.arena[(s.place-1)>>arenaShift][(s.place-1)%arenaChunk])
}

// add returns the number of a word. It numbers the word if it is new.
func (t *wordTable) add(hash uint32, word []byte) uint32 {
	mask := uint32(len(t.slots) - 1)
	for i := hash & mask; ; i = (i + 1) & mask {
		s := &t.slots[i]
		if s.place == 0 {
			*s = slot{hash, t.keep(word) + 1}
			if len(t.places)*2 > len(t.slots) {
				t.grow()
			}
			return uint32(len(t.places)) - 1
		}
		if s.hash != hash {
			continue
		}
		known := t.arena[(s.place-1)>>arenaShift][(s.place-1)%arenaChunk:]
		if int(known[4]) == len(word) && bytes.Equal(known[wordHeader:wordHeader+len(word)], word) {
			return binary.LittleEndian.Uint32(known)
		}
	}
}

// keep copies a word into the arena, after its number and length, and returns its place.
func (t *wordTable) keep(word []byte) uint32 {
	chunk, at := 0, 0
	if n := len(t.places); n > 0 {
		last := t.places[n-1]
		chunk, at = int(last>>arenaShift), int(last%arenaChunk)
		at += wordHeader + int(t.arena[chunk][at+4])
		if at+wordHeader+len(word) > arenaChunk {
			chunk, at = chunk+1, 0
		}
	}
	if chunk == len(t.arena) {
		t.arena = append(t.arena, make([]byte, arenaChunk))
	}
	to := t.arena[chunk][at:]
	binary.LittleEndian.PutUint32(to, uint32(len(t.places)))
	to[4] = uint8(len(word))
	copy(to[wordHeader:], word)
	place := uint32(chunk<<arenaShift | at)
	t.places = append(t.places, place)
	return place
}

// word returns the bytes of a word by its number.
func (t *wordTable) word(number uint32) []byte {
	place := t.places[number]
	known := t.arena[place>>arenaShift][place%arenaChunk:]
	return known[wordHeader : wordHeader+known[4]]
}

func (t *wordTable) grow() {
	old := t.slots
	t.slots = make([]slot, 2*len(old))
	mask := uint32(len(t.slots) - 1)
	for _, s := range old {
		if s.place == 0 {
			continue
		}
		i := s.hash & mask
		for t.slots[i].place != 0 {
			i = (i + 1) & mask
		}
		t.slots[i] = s
	}
}

// reset drops all words and keeps the memory.
func (t *wordTable) reset() {
	clear(t.slots)
	t.places = t.places[:0]
}

// head returns the first eight bytes of a word, or all if it has fewer, the first byte lowest. text
// begins with the word and may continue after it.
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

// hash hashes a word, given its head, by folded multiplications.
func (t *wordTable) hash(word []byte, head uint64) uint64 {
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
