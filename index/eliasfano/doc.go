// Package eliasfano stores an ascending sequence of numbers in little more than
// the least space possible, readable at any place without decoding the rest. It
// uses the quasi-succinct code of Elias and Fano as Vigna describes it
// ("Quasi-succinct indices", WSDM 2013).
//
// Of n values below a universe u, each value's lowest l = ⌊log2(u/n)⌋ bits are
// stored as they are, and the rest in unary: value i sets the bit at
// (value >> l) + i. A directory of the ones before each 512 bits, and a sample
// of every 512th one and zero, make both directions a few nanoseconds.
//
//	┌──────────┬──────────┬───────────────┬────────────────┬───────────┬──────┬───────┐
//	│ n        │ universe │ low bits      │ high bits      │ directory │ ones │ zeros │
//	│ uvarint  │ uvarint  │ ⌈n·l/8⌉ bytes │ words of 64    │ u32 each  │ u32  │ u32   │
//	└──────────┴──────────┴───────────────┴────────────────┴───────────┴──────┴───────┘
//
// There are h = n + ((u-1) >> l) + 1 high bits. Directory, ones and zeros are
// only there when h > 512. An empty sequence ends after the universe.
//
// A [List] is a view over such bytes, which may be hostile: whatever they
// contain, no method panics or runs long, and all values are below the
// universe.
package eliasfano
