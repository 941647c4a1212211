package docstore

import (
	"encoding/binary"
	"maps"
	"slices"
	"unicode/utf8"

	"github.com/trawl-search/trawl/index/format"
)

// repoHead is the part of a repo's record before its name.
type repoHead struct {
	oidLength int
	flags     uint8
	branches  int
}

// isText reports whether all strings of the record are UTF-8, as Decoder.String wants them.
func (r *Repo) isText() bool {
	texts := []string{r.Name, r.URL}
	for _, b := range r.Branches {
		texts = append(texts, b.Name, b.Commit)
	}
	for key, value := range r.Meta {
		texts = append(texts, key, value)
	}
	return !slices.ContainsFunc(texts, func(s string) bool { return !utf8.ValidString(s) })
}

// appendRepo encodes a repo's record; decodeRepo is its inverse.
func appendRepo(dst []byte, r *Repo, oidLength int) []byte {
	var flags byte
	for bit, set := range []bool{r.Archived, r.Fork, r.Public} {
		if set {
			flags |= 1 << bit
		}
	}
	dst = append(dst, byte(oidLength), flags)
	dst = binary.AppendUvarint(dst, uint64(len(r.Branches)))
	dst = format.AppendString(dst, r.Name)
	dst = format.AppendString(dst, r.URL)
	dst = binary.AppendUvarint(dst, r.Generation)
	for _, b := range r.Branches {
		dst = format.AppendString(dst, b.Name)
		dst = format.AppendString(dst, b.Commit)
	}
	dst = binary.AppendUvarint(dst, uint64(len(r.Meta)))
	for _, key := range slices.Sorted(maps.Keys(r.Meta)) {
		dst = format.AppendString(dst, key)
		dst = format.AppendString(dst, r.Meta[key])
	}
	return dst
}

func decodeRepoHead(d *format.Decoder) repoHead {
	h := repoHead{oidLength: int(d.U8()), flags: d.U8()}
	if h.oidLength != 0 && h.oidLength != 20 && h.oidLength != 32 {
		d.Failf("object ids of %d bytes", h.oidLength)
	}
	h.branches = d.Count(2)
	return h
}

// decodeRepo decodes the part of a record after its head; appendRepo is its
// inverse.
func decodeRepo(d *format.Decoder, h repoHead) Repo {
	r := Repo{
		Name: d.String(), URL: d.String(), Generation: d.Uvarint(),
		Archived: h.flags&1 != 0, Fork: h.flags&2 != 0, Public: h.flags&4 != 0,
	}
	if h.branches > 0 { // the record has room for as many
		r.Branches = make([]Branch, h.branches)
	}
	for i := range r.Branches {
		r.Branches[i] = Branch{Name: d.String(), Commit: d.String()}
	}
	if n := d.Count(2); n > 0 {
		r.Meta = make(map[string]string, n)
		for range n {
			key := d.String()
			r.Meta[key] = d.String()
		}
	}
	return r
}
