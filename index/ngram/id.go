package ngram

// Sizes of the spans of text for which windows are recorded, in bytes.
const (
	SuperblockSize      = 4096
	BlocksPerSuperblock = 8
	BlockSize           = SuperblockSize / BlocksPerSuperblock
)

// ID names a window; see the package documentation for the ranges. IDs are
// part of the shard format: changing a class, the hash or the folding needs a
// new format version.
type ID uint32

const (
	classBits  = 6
	windowSize = 3

	asciiSpace  = 1 << (windowSize * classBits)
	titleBase   = asciiSpace + 1<<16 // no window has the IDs between
	lettersCube = letters * letters * letters
	runesBits   = 18
	runesBase   = titleBase + lettersCube

	// Space is the number of IDs; every ID is below it.
	Space = runesBase + 1<<runesBits
)

// runesID returns the ID of a window of up to three runes, with at least one beyond ASCII. For a
// shorter window, the first arguments are 0. The multiplier is that of Fibonacci hashing (2^64
// divided by the golden ratio).
func runesID(a, b, c rune) ID {
	const runeBits = 21
	window := uint64(a)<<(2*runeBits) | uint64(b)<<runeBits | uint64(c)
	return runesBase + ID(window*0x9E3779B97F4A7C15>>(64-runesBits))
}

// titleID returns the ID of the title-case window whose three letters have the classes packed in
// ascii, an ASCII ID.
func titleID(ascii uint32) ID {
	first, second, third := ascii>>(2*classBits), ascii>>classBits&classMask, ascii&classMask
	return ID(titleBase + (first*letters+second)*letters + third)
}
