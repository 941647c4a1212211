package ngram

import (
	"encoding/binary"
	"math/bits"
	"unicode/utf8"
)

// Extractor finds the windows of blobs. It reuses tables of about 700 KiB from blob to blob, so
// keep one per goroutine; it is not safe for concurrent use. After the first blobs it allocates
// nothing.
type Extractor struct {
	folds *foldTable

	// block has the mask of blocks for each ID found in the current superblock, and ids[:n] lists
	// these IDs. ids has room for the most IDs of one superblock, and one more place that add may
	// write to.
	block [Space]uint8
	ids   [2*SuperblockSize + 3]ID
	n     int
	masks [2*SuperblockSize + 3]uint8

	units   []rune // of the folded text, if it is not all ASCII
	offsets []uint32
	bits    [SuperblockSize/64 + 1]uint64 // of word bytes
	spaces  [SuperblockSize/64 + 1]uint64
}

// NewExtractor returns an Extractor.
func NewExtractor() *Extractor { return &Extractor{folds: folds()} }

// Extract calls emit once for each superblock of blob in which some window
// starts, in ascending order. superblock counts from 0 within the blob; ids are
// the distinct windows that start there, in no particular order, and masks[i] has
// bit j set if ids[i] starts in block j. Both slices are valid only during the call.
//
// Blobs are limited to 4 GiB less one byte.
func (e *Extractor) Extract(blob []byte, emit func(superblock uint32, ids []ID, masks []uint8)) {
	next := 0 // start of the superblock's first rune
	for start := 0; start < len(blob); start += SuperblockSize {
		next = e.superblock(blob, start, next, SuperblockSize)
		e.emit(start, emit)
	}
}

// ExtractBetween is Extract for the windows that an index of words cannot answer for: all except
// those within a word, and those at an edge of a word next to white space. For opaque superblocks,
// as AppendOpaque returns them, it finds all windows that start there, or in a word that starts
// there.
func (e *Extractor) ExtractBetween(blob []byte, opaque []uint32, emit func(superblock uint32, ids []ID, masks []uint8)) {
	next := 0
	before := false // the superblock before is opaque
	for start := 0; start < len(blob); start += SuperblockSize {
		head := 0
		if len(opaque) > 0 && opaque[0] == uint32(start/SuperblockSize) {
			head, opaque, before = SuperblockSize, opaque[1:], true
		} else {
			if before && wordByte[blob[start-1]] { // a word continues from an opaque superblock
				head = ExtendedEnd(blob, start) - start
			}
			before = false
		}
		next = e.superblock(blob, start, next, head)
		e.emit(start, emit)
	}
}

// emit emits the collected windows of a superblock, and clears the tables.
func (e *Extractor) emit(start int, emit func(superblock uint32, ids []ID, masks []uint8)) {
	if e.n == 0 {
		return
	}
	ids, masks := e.ids[:e.n], e.masks[:e.n]
	e.n = 0
	for i, id := range ids {
		masks[i] = e.block[id]
		e.block[id] = 0
	}
	emit(uint32(start/SuperblockSize), ids, masks)
}

// superblock adds the windows of the superblock at start, whose first rune starts at next: those that are not left to words, and
// all that start in its first head bytes. It returns where the first rune after it starts.
func (e *Extractor) superblock(blob []byte, start, next, head int) int {
	end := min(start+SuperblockSize, len(blob))
	text := blob[start:min(end+windowSize-1, len(blob))]
	for i := range min(head, len(text)-windowSize+1) {
		if id, ok := titleWindow(text[i : i+windowSize]); ok {
			e.add(id, uint(i/BlockSize))
		}
	}
	if isASCII(text) {
		e.ascii(text, head)
		return end
	}
	return e.mixed(blob, start, end, next, head)
}

// ascii adds the windows of text, one superblock and up to two bytes of the next. Whether a window is new is unpredictable, so there
// is no branch on it: each ID is written, and counts only if n increases.
func (e *Extractor) ascii(text []byte, head int) {
	words := WordBits(e.bits[:], text)
	spaces := bitsOf(e.spaces[:], text, true)
	starts := len(text) - windowSize + 1
	for i, word := range words {
		space, nextWord, nextSpace := spaces[i], uint64(0), uint64(0)
		if i+1 < len(words) {
			nextWord, nextSpace = words[i+1], spaces[i+1]
		}
		at := i * 64
		second, third := word>>1|nextWord<<63, word>>2|nextWord<<62
		either := word | space
		either &= (either>>1 | (nextWord|nextSpace)<<63) & (either>>2 | (nextWord|nextSpace)<<62)
		left := either&(word^third) | word&second&third // left to words, as in ofWords
		if head > at {
			left &= ^uint64(0) << min(head-at, 64)
		}
		windows := ^left
		if n := starts - at; n < 64 {
			windows &= 1<<max(n, 0) - 1
		}
		bit, n := uint8(1)<<(at/BlockSize), e.n
		for ; windows != 0; windows &= windows - 1 {
			i := at + bits.TrailingZeros64(windows)
			w := (*[windowSize]byte)(text[i : i+windowSize]) // checks bounds once
			id := asciiWindow(w[0], w[1], w[2])
			mask := e.block[id]
			e.ids[n] = ID(id)
			n += int((uint32(mask) - 1) >> 31) // 1 if mask is 0
			e.block[id] = mask | bit
		}
		e.n = n
	}
}

func (e *Extractor) add(id ID, block uint) {
	mask := e.block[id]
	if mask == 0 {
		e.ids[e.n] = id
		e.n++
	}
	e.block[id] = mask | 1<<block
}

// mixed adds the windows of a superblock that is not all ASCII. It folds the text from next to two
// units after end, and then walks the units. Of windows that are left to words, it adds those that
// start in the first head bytes.
func (e *Extractor) mixed(blob []byte, start, end, next, head int) int {
	e.units, e.offsets = e.units[:0], e.offsets[:0]
	next = e.foldTo(blob, next, end)
	own := len(e.units)
	for at := next; at < len(blob) && len(e.units) < own+windowSize-1; {
		at = e.foldRune(blob, at)
	}
	e.units = append(e.units, noUnit, noUnit)
	for i := range own {
		at := int(e.offsets[i]) - start
		a, b, c := e.units[i], e.units[i+1], e.units[i+2]
		block := uint(at) / BlockSize
		if id, ok := threeUnits(a, b, c); ok && (at < head || !ofWords(a, b, c)) {
			e.add(id, block)
		}
		if id, ok := twoUnits(a, b); ok {
			e.add(id, block)
		}
		if id, ok := oneUnit(a); ok {
			e.add(id, block)
		}
	}
	return next
}

// foldTo folds the runes that start in [at, end), and returns where the next one starts.
func (e *Extractor) foldTo(blob []byte, at, end int) int {
	for at < end {
		c := blob[at]
		if c >= utf8.RuneSelf {
			at = e.foldRune(blob, at)
			continue
		}
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		e.units = append(e.units, rune(c))
		e.offsets = append(e.offsets, uint32(at))
		at++
	}
	return at
}

func (e *Extractor) foldRune(blob []byte, at int) int {
	r, size := utf8.DecodeRune(blob[at:])
	unit := noUnit
	if r != utf8.RuneError {
		unit = e.folds.fold(r)
	}
	e.units = append(e.units, unit)
	e.offsets = append(e.offsets, uint32(at))
	return at + size
}

// ofWords reports whether a window of these units is left to the index of words: it consists of
// word bytes, of word bytes followed by white space, or of white space followed by word bytes.
func ofWords(a, b, c rune) bool {
	if uint32(a|b|c) >= utf8.RuneSelf {
		return false
	}
	first, second, third := wordByte[a], wordByte[b], wordByte[c]
	if first == third {
		return first && second
	}
	return (first || isSpace(a)) && (second || isSpace(b)) && (third || isSpace(c))
}

// isSpace reports whether a rune is ASCII white space or an ASCII control character.
func isSpace(c rune) bool { return c <= ' ' }

// asciiWindow packs the classes of three ASCII bytes.
func asciiWindow(a, b, c byte) uint32 {
	return (uint32(asciiClass[a])<<classBits|uint32(asciiClass[b]))<<classBits | uint32(asciiClass[c])
}

// titleWindow returns the title-case window at the start of text, if there is one.
func titleWindow[T string | []byte](text T) (ID, bool) {
	if !isCapital(text[0]) || !isSmall(text[1]) || !isSmall(text[2]) {
		return 0, false
	}
	return titleID(asciiWindow(text[0], text[1], text[2])), true
}

func isCapital(c byte) bool { return 'A' <= c && c <= 'Z' }
func isSmall(c byte) bool   { return 'a' <= c && c <= 'z' }

// isASCII reports whether no byte of text has its high bit set.
func isASCII(text []byte) bool {
	var all uint64
	for ; len(text) >= 32; text = text[32:] {
		all |= binary.LittleEndian.Uint64(text) | binary.LittleEndian.Uint64(text[8:]) |
			binary.LittleEndian.Uint64(text[16:]) | binary.LittleEndian.Uint64(text[24:])
	}
	for _, c := range text {
		all |= uint64(c)
	}
	return all&tops == 0
}
