package merge

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/trawl-search/trawl/index/docstore"
	"github.com/trawl-search/trawl/index/format"
	"github.com/trawl-search/trawl/index/inverted"
)

// Verify checks that a shard with sound checksums is what its own documents make up: it writes the shard of them anew, for which it indexes
// all contents again, and compares the sections. It holds each content against its Git object id. Its errors are those of Shards, except
// ErrInputs.
func Verify(ctx context.Context, f *format.File) error {
	m := newMerger(ctx, Options{})
	m.afresh = true
	err := f.Guard(func() error { return m.verify(f) })
	if err = errors.Join(err, m.close()); err != nil {
		return fmt.Errorf("verify the documents of a shard: %w", err)
	}
	return nil
}

func (m *merger) verify(f *format.File) error {
	docs, err := docstore.OpenDocs(f)
	if err != nil {
		return err
	}
	in := Input{File: f}
	for i := range docs.Repos() {
		repo, err := docs.Repo(i)
		if err != nil {
			return err
		}
		if i > 0 && repo.Name <= in.Repos[i-1].Record.Name {
			return f.Corruptf("repo %q is out of order", repo.Name)
		}
		in.Repos = append(in.Repos, Repo{Record: repo})
	}
	if err := m.open([]Input{in}); err != nil {
		return err
	}
	if err := m.checkObjects(m.inputs[0]); err != nil {
		return err
	}
	switch err := m.plan(); {
	case err == nil:
	case errors.Is(err, format.ErrCorrupt) || m.ctx.Err() != nil:
		return err
	default: // what cannot be written cannot have been written
		return f.Corruptf("%v", err)
	}
	anew, err := writeTemporary(m.opts.TempDir, m.write)
	if err != nil {
		return err
	}
	return errors.Join(compare(f, anew), anew.Close())
}

// checkObjects holds each content against its object id.
func (m *merger) checkObjects(in *input) error {
	var reader docstore.Reader
	reader.ResetOnce(in.content)
	var text []byte
	for blob := range in.content.Blobs() {
		doc, err := in.docs.FirstDoc(blob)
		if err != nil {
			return err
		}
		oid, err := in.docs.OID(doc)
		if err != nil {
			return err
		}
		skip, err := in.docs.Skip(doc)
		if err != nil {
			return err
		}
		if text, err = reader.Append(text[:0], blob, 0, math.MaxUint32); err != nil {
			return err
		}
		if skip == docstore.NotSkipped && !isTextOf(text, oid) {
			return in.File.Corruptf("content of document %d has object id %x, not %x", doc, docstore.ObjectID(text, len(oid)), oid)
		}
		if err := m.pace(len(text)); err != nil {
			return err
		}
	}
	return nil
}

// isTextOf reports whether a text may be that of the Git object with an id: it is the object, or the object had a byte order mark, and may have
// been in UTF-16. A text with U+FFFD may have been decoded from bytes that nobody knows.
func isTextOf(text, oid []byte) bool {
	const mark = "\ufeff"
	is := func(object []byte) bool { return bytes.Equal(docstore.ObjectID(object, len(oid)), oid) }
	if is(text) || is(append([]byte(mark), text...)) || utf8.Valid(text) && bytes.ContainsRune(text, utf8.RuneError) {
		return true
	}
	var little, big []byte
	var units []uint16
	for _, r := range mark + string(text) {
		units = utf16.AppendRune(units[:0], r)
		for _, unit := range units {
			little, big = binary.LittleEndian.AppendUint16(little, unit), binary.BigEndian.AppendUint16(big, unit)
		}
	}
	return is(little) || is(big)
}

// byEffort are the sections that depend on the effort of the writer. Reading all contents has checked them.
var byEffort = []format.Tag{format.TagUnits, format.TagUnitOffsets, format.TagDictionaries}

// byRules are the sections that depend on the version of the rules for definitions.
var byRules = []format.Tag{format.TagDefinitions, format.TagWordTable, format.TagWordPostings}

// compare compares the sections of a shard with those that it should have.
func compare(f, anew *format.File) error {
	have, err := inverted.OpenWords(f)
	if err != nil {
		return err
	}
	want, err := inverted.OpenWords(anew)
	if err != nil {
		return err
	}
	infos := f.Sections()
	for _, s := range anew.Sections() {
		i := slices.IndexFunc(infos, func(o format.SectionInfo) bool { return o.Tag == s.Tag })
		if i < 0 {
			return &format.CorruptError{File: f.Name(), Section: s.Tag.String(), Offset: -1, Reason: "section is missing"}
		}
		if slices.Contains(byEffort, s.Tag) || !have.Marked() && slices.Contains(byRules, s.Tag) {
			continue
		}
		if o := infos[i]; o.Length != s.Length || o.CRC != s.CRC {
			return &format.CorruptError{File: f.Name(), Section: s.Tag.String(), Offset: o.Offset, Reason: "it is not what the documents of the shard make up"}
		}
	}
	if have.Marked() {
		return nil
	}
	return have.SamePostings(want)
}
