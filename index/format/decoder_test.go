package format

import (
	"errors"
	"hash/crc32"
	"testing"
)

func crc(p []byte) uint32 { return crc32.Checksum(p, castagnoli) }

func TestDecoder(t *testing.T) {
	data := AppendString([]byte{1, 3, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0, 5}, "six")
	data = append(AppendString(data, []byte("seven")), 8, 9)
	d := NewDecoder("file", TagLines, data)
	if d.U8() != 1 || d.U32() != 3 || d.U64() != 4 || d.Uvarint() != 5 {
		t.Error("numbers")
	}
	if s := d.String(); s != "six" {
		t.Errorf("string %q", s)
	}
	if b := d.BytesWithLength(); string(b) != "seven" || cap(b) != 5 {
		t.Errorf("bytes %q with room for %d", b, cap(b))
	}
	if d.Left() != 2 {
		t.Errorf("%d bytes are left", d.Left())
	}
	if d.UvarintMax(8) != 8 || d.End() == nil {
		t.Error("a byte that is left over is not an error")
	}
	if d.U8() != 0 || d.Uvarint() != 0 || d.Left() != 0 {
		t.Error("reads go on after an error")
	}
}

func TestDecoderRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		data []byte
		read func(*Decoder)
	}{
		"no byte":       {nil, func(d *Decoder) { d.U8() }},
		"short u32":     {[]byte{1, 2, 3}, func(d *Decoder) { d.U32() }},
		"short u64":     {[]byte{1, 2, 3, 4, 5, 6, 7}, func(d *Decoder) { d.U64() }},
		"no number":     {nil, func(d *Decoder) { d.Uvarint() }},
		"cut number":    {[]byte{0x80}, func(d *Decoder) { d.Uvarint() }},
		"long number":   {[]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2}, func(d *Decoder) { d.Uvarint() }},
		"large number":  {[]byte{9}, func(d *Decoder) { d.UvarintMax(8) }},
		"many things":   {[]byte{3, 0, 0, 0, 0, 0}, func(d *Decoder) { d.Count(2) }},
		"long string":   {[]byte{3, 'a', 'b'}, func(d *Decoder) { _ = d.String() }},
		"negative":      {[]byte{1}, func(d *Decoder) { d.Bytes(-1) }},
		"own complaint": {nil, func(d *Decoder) { d.Failf("no"); d.Failf("not said") }},
	} {
		t.Run(name, func(t *testing.T) {
			d := NewDecoder("file", TagLines, c.data)
			c.read(&d)
			checkCorrupt(t, name, d.Err())
		})
	}
}

func FuzzDecoder(f *testing.F) {
	f.Add([]byte{0, 1, 2, 3, 4, 5, 6, 7}, []byte("some bytes to decode, \x05 fields"))
	f.Fuzz(func(t *testing.T, ops, data []byte) {
		d := NewDecoder("file", TagLines, data)
		for _, op := range ops {
			before := d.Left()
			switch op % 8 {
			case 0:
				d.U8()
			case 1:
				d.UvarintMax(uint64(op))
			case 2:
				d.U32()
			case 3:
				d.U64()
			case 4:
				d.Uvarint()
			case 5:
				if n := d.Count(int(op)); n > before {
					t.Fatalf("%d things in %d bytes", n, before)
				}
			case 6:
				_ = d.String()
			case 7:
				d.Bytes(int(op) - 100)
			}
			if d.Left() > before {
				t.Fatal("more is left than was")
			}
		}
		if err := d.End(); err != nil && !errors.Is(err, ErrCorrupt) {
			t.Fatal(err)
		}
	})
}
