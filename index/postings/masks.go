package postings

import (
	"encoding/binary"
	"errors"
	"math/bits"
)

// Masks are coded apart from the superblocks they belong to, in blocks of
// blockSize as the superblocks are. Each block is coded by the table of its
// density class, which its first three bits name.
const (
	maskClasses   = 8
	maskClassBits = 3
)

// classLimits has the most bits in 32 masks that each class but the last is for.
// The first is for blocks in which each mask has one bit.
var classLimits = [maskClasses - 1]int{32, 38, 48, 60, 80, 112, 160}

func maskClass(masks []uint8) int {
	ones := 0
	for _, m := range masks {
		ones += bits.OnesCount8(m)
	}
	for class, limit := range classLimits {
		if ones*32 <= limit*len(masks) {
			return class
		}
	}
	return maskClasses - 1
}

// maskEncoder holds a code per class. First count all blocks, then build, then
// append the blocks.
type maskEncoder struct {
	counts  [maskClasses][256]uint64
	lengths [maskClasses][256]uint8
	codes   [maskClasses][256]uint16
	body    []byte
	ends    []uint32
}

func (e *maskEncoder) count(masks []uint8) {
	counts := &e.counts[maskClass(masks)]
	for _, m := range masks {
		counts[m]++
	}
}

// build makes the codes and appends the tables to dst: for each class, how many
// codes there are of each length, then the masks in order of their codes.
func (e *maskEncoder) build(dst []byte) []byte {
	for class := range maskClasses {
		e.lengths[class] = codeLengths(&e.counts[class])
		symbols, perLength := canonical(&e.lengths[class])
		next, i := uint16(0), 0
		for length := 1; length <= maxCodeBits; length++ {
			dst = append(dst, byte(perLength[length]))
			next <<= 1
			for range perLength[length] {
				e.codes[class][symbols[i]] = next
				next++
				i++
			}
		}
		dst = append(dst, symbols...)
	}
	return dst
}

// append appends the masks of a list, whose blocks have been counted.
func (e *maskEncoder) append(dst []byte, masks []uint8) []byte {
	e.body, e.ends = e.body[:0], e.ends[:0]
	for len(masks) > 0 {
		n := min(blockSize, len(masks))
		e.body = e.appendBlock(e.body, masks[:n])
		e.ends = append(e.ends, uint32(len(e.body)))
		masks = masks[n:]
	}
	if skips := len(e.ends) - 1; skips > 0 {
		width := uint(bits.Len32(e.ends[skips]))
		dst = appendPacked(append(dst, byte(width)), e.ends[:skips], width)
	}
	return append(dst, e.body...)
}

// appendBlock writes codes with their highest bit first.
func (e *maskEncoder) appendBlock(dst []byte, masks []uint8) []byte {
	class := maskClass(masks)
	pending, n := uint64(class), uint(maskClassBits)
	for _, m := range masks {
		length := uint(e.lengths[class][m])
		pending = pending<<length | uint64(e.codes[class][m])
		n += length
		if n >= 32 {
			n -= 32
			dst = binary.BigEndian.AppendUint32(dst, uint32(pending>>n))
		}
	}
	pending <<= 32 - n // the bits left are the highest of the low half
	for ; n > 0; n -= min(n, 8) {
		dst = append(dst, byte(pending>>24))
		pending <<= 8
	}
	return dst
}

// maskTable decodes one class: the codes of at most length bits are those whose
// bits, filled up to maxCodeBits, are below limit[length].
type maskTable struct {
	limit   [maxCodeBits + 1]uint16
	base    [maxCodeBits + 1]int16
	symbols []byte
}

var errMaskTable = errors.New("a table of mask codes is out of its bounds")

// openMaskTable reads a table and returns the bytes it takes.
func openMaskTable(data []byte) (t maskTable, size int, err error) {
	if len(data) < maxCodeBits {
		return t, 0, errMaskTable
	}
	code, symbols := 0, 0
	for length := 1; length <= maxCodeBits; length++ {
		code <<= 1
		t.base[length] = int16(symbols - code)
		code += int(data[length-1])
		symbols += int(data[length-1])
		if code > 1<<length {
			return t, 0, errMaskTable
		}
		t.limit[length] = uint16(code << (maxCodeBits - length))
	}
	if symbols > 255 || maxCodeBits+symbols > len(data) {
		return t, 0, errMaskTable
	}
	t.symbols = data[maxCodeBits : maxCodeBits+symbols : maxCodeBits+symbols]
	return t, maxCodeBits + symbols, nil
}

// symbol decodes the mask whose code starts the 12 bits of window, and the code's
// length; 0 when there is no such code.
func (t *maskTable) symbol(window uint16) (mask uint8, length uint) {
	for length := uint(1); length <= maxCodeBits; length++ {
		if window < t.limit[length] {
			i := int(t.base[length]) + int(window>>(maxCodeBits-length))
			return t.symbols[i], length
		}
	}
	return 0, 0
}

var errMaskBlock = errors.New("a block of masks ends too early or has an unknown code")

// maskBlock decodes the masks of one block, as far as they are asked for.
type maskBlock struct {
	table *maskTable
	data  []byte
	pos   uint // in bits
	n     int  // masks decoded
	masks [blockSize]uint8
}

func (b *maskBlock) reset(tables *[maskClasses]maskTable, data []byte) error {
	if len(data) == 0 {
		return errMaskBlock
	}
	b.table, b.data, b.pos, b.n = &tables[data[0]>>(8-maskClassBits)], data, maskClassBits, 0
	return nil
}

// at returns mask i, below blockSize.
func (b *maskBlock) at(i int) (uint8, error) {
	for b.n <= i {
		mask, length := b.table.symbol(b.window())
		b.pos += length
		if length == 0 || b.pos > uint(len(b.data))*8 {
			return 0, errMaskBlock
		}
		b.masks[b.n] = mask
		b.n++
	}
	return b.masks[i], nil
}

// window returns the next maxCodeBits bits; zeros past the end.
func (b *maskBlock) window() uint16 {
	i := b.pos / 8
	if i+4 <= uint(len(b.data)) {
		return uint16(binary.BigEndian.Uint32(b.data[i:]) << (b.pos % 8) >> (32 - maxCodeBits))
	}
	var end [4]byte
	copy(end[:], b.data[min(i, uint(len(b.data))):])
	return uint16(binary.BigEndian.Uint32(end[:]) << (b.pos % 8) >> (32 - maxCodeBits))
}
