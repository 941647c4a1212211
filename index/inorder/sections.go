package inorder

import (
	"fmt"
	"io"

	"github.com/trawl-search/trawl/index/format"
)

// Sections keeps sections that are ready before their turn in the shard. It is a
// format.SectionWriter, and Replay passes its sections on. The caller must call Close, also after
// errors. It is not safe for concurrent use.
type Sections struct {
	data  *Buffer
	heads []sectionHead
	err   error // the first one
}

type sectionHead struct {
	tag   format.Tag
	flags format.Flags
	size  int64
}

// NewSections returns Sections without a section.
func NewSections(cfg BufferConfig) *Sections { return &Sections{data: NewBuffer(cfg)} }

// Begin implements format.SectionWriter.
func (s *Sections) Begin(tag format.Tag, flags format.Flags) error {
	s.heads = append(s.heads, sectionHead{tag: tag, flags: flags})
	return s.err
}

// Write implements format.SectionWriter.
func (s *Sections) Write(p []byte) (int, error) {
	if s.err != nil {
		return 0, s.err
	}
	n, err := s.data.Write(p)
	s.heads[len(s.heads)-1].size += int64(n)
	s.err = err
	return n, err
}

// End implements format.SectionWriter.
func (s *Sections) End() error { return s.err }

// WriteSection implements format.SectionWriter.
func (s *Sections) WriteSection(tag format.Tag, flags format.Flags, data []byte) error {
	_ = s.Begin(tag, flags) // errors stay, and End returns them
	_, _ = s.Write(data)
	return s.End()
}

// Replay writes all sections in order. It leaves all checks to w.
func (s *Sections) Replay(w format.SectionWriter) error {
	if s.err != nil {
		return s.err
	}
	r := replay{to: w, heads: s.heads}
	if _, err := s.data.WriteTo(&r); err != nil {
		return fmt.Errorf("write held sections: %w", err)
	}
	return r.endFull()
}

// Close drops the sections.
func (s *Sections) Close() error {
	s.heads = nil
	return s.data.Close()
}

// replay splits a stream of bytes into sections.
type replay struct {
	to    format.SectionWriter
	heads []sectionHead // of the sections left; the first has what is left of its size
	open  bool
}

// endFull ends the open section if it is complete, and writes the empty sections that follow.
func (r *replay) endFull() error {
	for len(r.heads) > 0 && r.heads[0].size == 0 {
		if err := r.begin(); err != nil {
			return err
		}
		r.heads, r.open = r.heads[1:], false
		if err := r.to.End(); err != nil {
			return fmt.Errorf("end a held section: %w", err)
		}
	}
	return nil
}

func (r *replay) begin() error {
	if r.open {
		return nil
	}
	r.open = true
	if err := r.to.Begin(r.heads[0].tag, r.heads[0].flags); err != nil {
		return fmt.Errorf("begin held section %s: %w", r.heads[0].tag, err)
	}
	return nil
}

// Write implements io.Writer.
func (r *replay) Write(p []byte) (written int, err error) {
	for len(p) > 0 {
		if err := r.endFull(); err != nil {
			return written, err
		}
		if len(r.heads) == 0 {
			return written, io.ErrShortWrite
		}
		if err := r.begin(); err != nil {
			return written, err
		}
		n, err := r.to.Write(p[:min(int64(len(p)), r.heads[0].size)])
		written += n
		if err != nil {
			return written, fmt.Errorf("write held section %s: %w", r.heads[0].tag, err)
		}
		p, r.heads[0].size = p[n:], r.heads[0].size-int64(n)
	}
	return written, nil
}
