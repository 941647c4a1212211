package docstore

import (
	"sync"

	"github.com/trawl-search/trawl/index/format"
)

const (
	// unitsPerDictionary is the number of successive units that share a
	// dictionary. They have 8 MiB at most, which bounds the memory of a writer.
	// Neighbouring units are similar: with one dictionary for a whole shard,
	// units are 5 to 20 % larger.
	unitsPerDictionary = 2048
	// A dictionary takes samplePiece bytes out of each samplePiece·sampleRate
	// of the text, up to its maximum size.
	samplePiece = 256
	sampleRate  = 16
)

// dictionarySize returns the length of the dictionary for a text of n bytes.
func dictionarySize(n int) int { return min(n/sampleRate, MaxDictionary) }

const (
	// A coverer looks at coverSamples samples of coverSample bytes at equal
	// distances, or at all of a short text. It chooses pieces of coverPiece
	// bytes, in coverRounds rounds if the first one does not find enough.
	coverSamples, coverSample, coverPiece, coverRounds = 1024, 2048, 192, 4
	// coverBits is the size of the hash of a string of eight bytes.
	coverBits = 18
)

// coverer chooses dictionaries of pieces whose strings occur in most samples of
// a text and in no piece chosen before. Liao, Petri, Moffat and Wirth
// (Effective Construction of Relative Lempel-Ziv Dictionaries, 2016) call this
// cover, and zstd's trainer does it too.
type coverer struct {
	// frequency of each string: the number of samples with it, by hash.
	frequency, last [1 << coverBits]uint16
	hashes          [coverSample]uint32

	text   []byte
	stride int // distance between samples
}

var coverers = sync.Pool{New: func() any { return new(coverer) }}

func (c *coverer) appendDictionary(dst, text []byte) []byte {
	size := dictionarySize(len(text))
	c.text, c.stride = text, max(coverSample, (len(text)+coverSamples-1)/coverSamples)
	samples := (len(text) + c.stride - 1) / c.stride
	c.count(samples)
	// Pieces come from everywhere: one round takes the best piece of each group
	// of samples.
	group := max(1, samples*coverPiece/max(size, 1))
	for round := 0; round < coverRounds && size > coverPiece; round++ {
		for s := 0; s < samples && size > coverPiece; s += group {
			if piece := c.best(s, min(s+group, samples)); piece != nil {
				for at := 0; at+8 <= len(piece); at++ { // its strings gain nothing any more
					c.frequency[coverHash(piece[at:])] = 0
				}
				dst = append(dst, piece...)
				size -= len(piece)
			}
		}
	}
	return dst
}

func (c *coverer) sample(i int) []byte {
	text := c.text[i*c.stride:]
	return text[:min(len(text), coverSample)]
}

func coverHash(text []byte) uint32 { return uint32(le.Uint64(text) * hashPrime >> (64 - coverBits)) }

// count sets the frequencies.
func (c *coverer) count(samples int) {
	clear(c.frequency[:])
	clear(c.last[:])
	for i := range samples {
		s := c.sample(i)
		for at := 0; at+8 <= len(s); at++ {
			if h := coverHash(s[at:]); c.last[h] != uint16(i+1) {
				c.last[h] = uint16(i + 1)
				c.frequency[h]++
			}
		}
	}
}

// best returns the piece of the samples [from, to) with the highest sum of
// frequencies; nil if none of its strings is in another sample.
func (c *coverer) best(from, to int) (piece []byte) {
	const window = coverPiece - 7 // strings of a piece
	most := 0
	for i := from; i < to; i++ {
		s, sum := c.sample(i), 0
		for at := 0; at+8 <= len(s); at++ {
			c.hashes[at] = coverHash(s[at:])
			sum += c.gain(c.hashes[at])
			if at >= window {
				sum -= c.gain(c.hashes[at-window])
			}
			if at >= window-1 && sum > most {
				most, piece = sum, s[at-window+1:at+8]
			}
		}
	}
	return piece
}

// gain is what a string adds: nothing if only one sample has it.
func (c *coverer) gain(hash uint32) int {
	if n := int(c.frequency[hash]); n > 1 {
		return n
	}
	return 0
}

// appendDictionary appends a dictionary for a text to dst: none if the text is
// too short for it to pay.
func appendDictionary(dst, text []byte, effort Effort) []byte {
	if effort == Fresh { // pieces at equal distances, which gain nearly as much as chosen ones, within 5 %
		pieces := dictionarySize(len(text)) / samplePiece
		for i := range pieces {
			at := i * (len(text) / pieces)
			dst = append(dst, text[at:at+samplePiece]...)
		}
		return dst
	}
	c, _ := coverers.Get().(*coverer)
	dst = c.appendDictionary(dst, text)
	c.text = nil
	coverers.Put(c)
	return dst
}

// writeDictionaries writes the section of dictionaries: where each ends, and
// then all of them.
func (u *unitWriter) writeDictionaries(w *format.Writer, tag format.Tag) error {
	_ = w.Begin(tag, format.Required) // errors stay, and End returns them
	ends, end := make([]byte, 0, 4*len(u.dictionaries)), uint32(0)
	for _, dict := range u.dictionaries {
		end += uint32(len(dict))
		ends = le.AppendUint32(ends, end)
	}
	_, _ = w.Write(ends)
	for _, dict := range u.dictionaries {
		_, _ = w.Write(dict)
	}
	return w.End()
}

// dictionaryOf is the number of a unit's dictionary.
func (u *units) dictionaryOf(unit uint32) uint32 {
	if u.perDictionary == 0 {
		return 0
	}
	return unit / u.perDictionary
}

// dictionary returns a dictionary as a slice of the mapping; it is empty if
// there are none.
func (u *units) dictionary(i uint32) ([]byte, error) {
	if u.perDictionary == 0 {
		return nil, nil
	}
	// The end of the dictionary before, if there is one, is stored before the
	// end of this one.
	before := min(i, 1)
	data, err := u.dictionaries.Bytes(4*int64(i-before), 4*int64(1+before))
	if err != nil {
		return nil, err
	}
	from, to := uint32(0), le.Uint32(data[4*before:])
	if before > 0 {
		from = le.Uint32(data)
	}
	if from > to || to-from > MaxDictionary {
		return nil, u.dictionaries.Corruptf(4*int64(i), "dictionary %d reaches from %d to %d", i, from, to)
	}
	ends := 4 * ((int64(u.count) + int64(u.perDictionary) - 1) / int64(u.perDictionary))
	return u.dictionaries.Bytes(ends+int64(from), int64(to-from))
}
