package ngram

import (
	"encoding/binary"
	"unicode/utf8"
)

// Extractor finds the windows of blobs. It owns tables of about 400 KiB that it
// reuses from blob to blob, so keep one per goroutine; it is not safe for
// concurrent use. Extracting allocates nothing once it is warm.
type Extractor struct {
	folds *foldTable

	// block has, for each ID found in the current superblock, the mask of blocks,
	// and ids[:n] says which those are. ids has room for the most that one
	// superblock can hold, and one spare place that add may write to.
	block [Space]uint8
	ids   [2*SuperblockSize + 3]ID
	n     int
	masks [2*SuperblockSize + 3]uint8

	seen     [(Space + 63) / 64]uint64
	distinct int

	folded  []byte
	offsets []uint32
}

// NewExtractor makes an Extractor.
func NewExtractor() *Extractor {
	return &Extractor{folds: folds()}
}

// Extract calls emit once for each superblock of blob in which some window
// starts, in ascending order. superblock counts from 0 within the blob; ids are
// the distinct windows that start there, in no particular order, and masks[i] has
// bit j set if ids[i] starts in block j. Both slices are valid only during the call.
//
// Blobs are limited to 4 GiB less one byte.
func (e *Extractor) Extract(blob []byte, emit func(superblock uint32, ids []ID, masks []uint8)) {
	e.distinct = 0
	single := len(blob) <= SuperblockSize
	next := 0 // where the first rune that starts in the superblock starts
	for start := 0; start < len(blob); start += SuperblockSize {
		next = e.superblock(blob, start, next)
		if e.n == 0 {
			continue
		}
		ids, masks := e.take(!single)
		emit(uint32(start/SuperblockSize), ids, masks)
	}
	if !single {
		clear(e.seen[:])
	}
}

// Distinct returns how many distinct windows the last extracted blob has.
func (e *Extractor) Distinct() int { return e.distinct }

// superblock adds the windows that start in the superblock at start, whose first
// rune starts at next, and returns where the first rune after it starts.
func (e *Extractor) superblock(blob []byte, start, next int) int {
	end := min(start+SuperblockSize, len(blob))
	ahead := min(end+windowSize-1, len(blob))
	if isASCII(blob[start:ahead]) {
		e.ascii(blob[start:ahead])
		return end
	}
	return e.mixed(blob, start, end, next)
}

// take returns the windows collected, and makes the tables ready for the next.
func (e *Extractor) take(count bool) ([]ID, []uint8) {
	ids := e.ids[:e.n]
	masks := e.masks[:e.n]
	e.n = 0
	for i, id := range ids {
		masks[i] = e.block[id]
		e.block[id] = 0
	}
	if !count {
		e.distinct = len(ids)
		return ids, masks
	}
	for _, id := range ids {
		word, bit := id/64, uint64(1)<<(id%64)
		if e.seen[word]&bit == 0 {
			e.seen[word] |= bit
			e.distinct++
		}
	}
	return ids, masks
}

func (e *Extractor) add(id ID, block uint) {
	mask := e.block[id]
	if mask == 0 {
		e.ids[e.n] = id
		e.n++
	}
	e.block[id] = mask | 1<<block
}

// ascii adds the windows of text, one superblock and up to two bytes of the next.
func (e *Extractor) ascii(text []byte) {
	if len(text) < windowSize {
		return
	}
	window := asciiEntry[text[0]]<<classBits | asciiEntry[text[1]]
	last := text[windowSize-1:] // last[i] ends the window that starts at i
	for block := uint(0); len(last) > 0; block++ {
		size := min(BlockSize, len(last))
		window = e.asciiBlock(last[:size], window, block)
		last = last[size:]
	}
}

// asciiBlock adds the windows that end at each byte of last; window holds the two
// entries before. Shifting leaves older entries above, which the masks cut off.
// Whether a window is new is unforeseeable, so that there is no branch on it: each ID
// is written, and stays if n moves on.
func (e *Extractor) asciiBlock(last []byte, window uint64, block uint) uint64 {
	bit := uint8(1) << block
	n := e.n
	for _, c := range last {
		window = window<<classBits&^(windowOverflow) | asciiEntry[c]
		id := uint32(window & windowMask)
		mask := e.block[id]
		e.ids[n] = ID(id)
		n += int((uint32(mask) - 1) >> 31) // 1 if mask is 0
		e.block[id] = mask | bit
		if isTitle(window) {
			e.n = n
			e.add(titleID(id), block)
			n = e.n
		}
	}
	e.n = n
	return window
}

// windowOverflow has the bits that classes shifted out of a window of three would
// reach: they must not run into the shapes above.
const windowOverflow = (1<<shapeShift - 1) &^ windowMask

// mixed adds the windows of a superblock in which not all is ASCII: it folds the
// text from next to end and two bytes on, then goes over the folded bytes.
func (e *Extractor) mixed(blob []byte, start, end, next int) int {
	e.folded, e.offsets = e.folded[:0], e.offsets[:0]
	next = e.foldTo(blob, next, end)
	own := len(e.folded)
	for at := next; at < len(blob) && len(e.folded) < own+windowSize-1; {
		at = e.foldRune(blob, at)
	}
	e.foldedWindows(own, start)
	e.titleWindows(blob, start, end)
	return next
}

// foldTo folds the runes that start in [at, end), and returns where the first
// later one starts.
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
		e.folded = append(e.folded, c)
		e.offsets = append(e.offsets, uint32(at))
		at++
	}
	return at
}

func (e *Extractor) foldRune(blob []byte, at int) int {
	before := len(e.folded)
	folded, size := e.folds.appendFold(e.folded, blob[at:])
	for range len(folded) - before {
		e.offsets = append(e.offsets, uint32(at))
	}
	e.folded = folded
	return at + size
}

// foldedWindows adds the windows that start in folded[:own].
func (e *Extractor) foldedWindows(own, start int) {
	text := e.folded
	for i := range min(own, len(text)-windowSize+1) {
		id := windowID(text[i], text[i+1], text[i+2])
		e.add(id, uint(int(e.offsets[i])-start)/BlockSize)
	}
}

// titleWindows adds the title-case windows that start in [start, end).
func (e *Extractor) titleWindows(blob []byte, start, end int) {
	for i := start; i < min(end, len(blob)-windowSize+1); i++ {
		if id, ok := titleWindow(blob[i:]); ok {
			e.add(id, uint(i-start)/BlockSize)
		}
	}
}

// windowID is the ID of a window of three folded bytes.
func windowID(a, b, c byte) ID {
	if (a | b | c) >= utf8.RuneSelf {
		return hashedID(uint32(a)<<16 | uint32(b)<<8 | uint32(c))
	}
	packed := (asciiEntry[a]<<classBits|asciiEntry[b])<<classBits | asciiEntry[c]
	return ID(packed & windowMask)
}

// titleWindow is the title-case window at the start of text, if one is there.
func titleWindow[T string | []byte](text T) (ID, bool) {
	if text[0] < 'A' || text[0] > 'Z' {
		return 0, false
	}
	window := (asciiEntry[text[0]]<<classBits|asciiEntry[text[1]])<<classBits | asciiEntry[text[2]]
	return titleID(uint32(window & windowMask)), isTitle(window)
}

// isASCII reports whether no byte of text has its high bit set.
func isASCII(text []byte) bool {
	var all uint64
	for ; len(text) >= 8; text = text[8:] {
		all |= binary.LittleEndian.Uint64(text)
	}
	for _, c := range text {
		all |= uint64(c)
	}
	return all&0x8080808080808080 == 0
}
