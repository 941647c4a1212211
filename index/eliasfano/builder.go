package eliasfano

import (
	"encoding/binary"
	"fmt"
	"io"
	"math/bits"
)

// Append encodes values, which ascend (equal ones are allowed) and are below
// universe, and appends them to dst.
func Append(dst []byte, values []uint64, universe uint64) ([]byte, error) {
	b := NewBuilder(len(values), universe)
	for _, v := range values {
		if err := b.Add(v); err != nil {
			return dst, err
		}
	}
	return b.AppendTo(dst)
}

// Builder encodes a list value by value. Its memory is the size of the encoded
// list. The first error stays. It is not safe for concurrent use.
type Builder struct {
	layout
	data []byte // everything except directory and samples
	next int
	last uint64
	err  error
}

// NewBuilder starts a list of exactly n values below universe.
func NewBuilder(n int, universe uint64) *Builder {
	b := &Builder{}
	header := binary.AppendUvarint(nil, uint64(max(n, 0)))
	header = binary.AppendUvarint(header, universe)
	if b.layout, b.err = newLayout(n, universe, len(header)); b.err != nil {
		return b
	}
	b.data = make([]byte, b.end())
	copy(b.data, header)
	return b
}

// Add adds the next value: at least the one before, and below the universe.
func (b *Builder) Add(v uint64) error {
	switch {
	case b.err != nil:
	case b.next == b.n:
		b.err = fmt.Errorf("value %d is one more than the %d announced", v, b.n)
	case v < b.last:
		b.err = fmt.Errorf("value %d follows %d", v, b.last)
	case v >= b.universe:
		b.err = fmt.Errorf("value %d is not below %d", v, b.universe)
	default:
		b.putLow(v & (1<<b.lowBits - 1))
		pos := int(v>>b.lowBits) + b.next
		b.data[b.high+pos/8] |= 1 << (pos % 8)
		b.last = v
		b.next++
	}
	return b.err
}

func (b *Builder) putLow(v uint64) {
	at := uint64(b.next) * uint64(b.lowBits)
	off, shift := b.low+int(at/8), uint(at%8)
	word := b.data[off:] // at least a word of high bits follows the low bits
	le.PutUint64(word, le.Uint64(word)|v<<shift)
	if shift+b.lowBits > wordBits {
		word[8] |= byte(v >> (wordBits - shift))
	}
}

// AppendTo appends the finished list to dst.
func (b *Builder) AppendTo(dst []byte) ([]byte, error) {
	if err := b.finish(); err != nil {
		return dst, err
	}
	return append(dst, b.data...), nil
}

// WriteTo writes the finished list to w.
func (b *Builder) WriteTo(w io.Writer) (int64, error) {
	if err := b.finish(); err != nil {
		return 0, err
	}
	n, err := w.Write(b.data)
	if err != nil {
		err = fmt.Errorf("write a list of %d values: %w", b.n, err)
	}
	return int64(n), err
}

// finish fills directory and samples.
func (b *Builder) finish() error {
	if b.err == nil && b.next != b.n {
		b.err = fmt.Errorf("%d values were announced, %d came", b.n, b.next)
	}
	if b.err != nil || b.blocks <= 1 {
		return b.err
	}
	ones, zeros := 0, 0
	for block := range b.blocks {
		le.PutUint32(b.data[b.dir+block*rankSize:], uint32(ones))
		from := b.high + block*blockBits/8
		to := min(from+blockBits/8, b.dir)
		o := 0
		for w := from; w < to; w += wordBits / 8 {
			o += bits.OnesCount64(le.Uint64(b.data[w:]))
		}
		b.sampleBlock(b.ones(), block, ones, ones+o, b.n)
		z := (to-from)*8 - o
		b.sampleBlock(b.zeros(), block, zeros, zeros+z, b.lastZero()+1)
		ones, zeros = ones+o, zeros+z
	}
	return nil
}

// sampleBlock records the block in the samples at off whose ones (or zeros) are
// [from, to) out of total.
func (b *Builder) sampleBlock(off, block, from, to, total int) {
	for k := samples(from); k*sample < min(to, total); k++ {
		le.PutUint32(b.data[off+k*rankSize:], uint32(block))
	}
}
