package gitsourcetest

import (
	"bytes"
	"compress/zlib"
	"crypto/sha1"
	"encoding/binary"
	"fmt"
	"testing"
)

// bombBase is the size of the blob that a bomb copies again and again.
const bombBase = 1 << 20

// PackBomb is a pack of a blob of zeros and a delta that copies it again and again, up to size
// bytes, a multiple of 1 MiB. It is small for the sender, but git holds it whole.
func PackBomb(tb testing.TB, size int) []byte {
	tb.Helper()
	compressed := func(data []byte) []byte {
		var b bytes.Buffer
		w := zlib.NewWriter(&b)
		if _, err := w.Write(data); err != nil {
			tb.Fatal(err)
		}
		if err := w.Close(); err != nil {
			tb.Fatal(err)
		}
		return b.Bytes()
	}
	header := func(kind byte, n int) []byte {
		h := []byte{kind<<4 | byte(n&15)}
		for n >>= 4; n > 0; n >>= 7 {
			h[len(h)-1] |= 0x80
			h = append(h, byte(n&0x7f))
		}
		return h
	}
	zeros := make([]byte, bombBase)
	delta := binary.AppendUvarint(binary.AppendUvarint(nil, bombBase), uint64(size))
	for range size / bombBase {
		delta = append(delta, 0x80|0x40, 0x10) // copy from offset 0: the third byte of the length is 0x10
	}
	pack := append([]byte("PACK"), 0, 0, 0, 2, 0, 0, 0, 2)
	const blob, offsetDelta = 3, 6
	first := append(header(blob, bombBase), compressed(zeros)...)
	pack = append(pack, first...)
	pack = append(pack, header(offsetDelta, len(delta))...)
	offset := len(first) // one byte less for each further one, from the last
	back := []byte{byte(offset & 0x7f)}
	for offset >>= 7; offset > 0; offset >>= 7 {
		offset--
		back = append([]byte{0x80 | byte(offset&0x7f)}, back...)
	}
	pack = append(append(pack, back...), compressed(delta)...)
	sum := sha1.Sum(pack)
	return append(pack, sum[:]...)
}

// CommitPackBomb puts a commit on the branch main whose two files are the blobs of a
// PackBomb. A server of the repository sends the few kilobytes as they are. Git takes size
// bytes of memory here, once.
func (r *Repo) CommitPackBomb(size int) {
	r.tb.Helper()
	r.GitIn(string(PackBomb(r.tb, size)), "index-pack", "--stdin")
	zeros := func(size int) string {
		object := sha1.New()
		fmt.Fprintf(object, "blob %d\x00", size)
		for piece := make([]byte, bombBase); size > 0; size -= bombBase {
			object.Write(piece)
		}
		return fmt.Sprintf("%x", object.Sum(nil))
	}
	r.Commit("main", [3]string{"100644", zeros(bombBase), "base"}, [3]string{"100644", zeros(size), "bomb"})
}
