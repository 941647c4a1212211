package inorder

import (
	"errors"
	"fmt"
	"math"

	"github.com/trawl-search/trawl/index/format"
)

// Sections keeps sections in memory that are ready before their turn in the shard. It is a
// format.SectionWriter, and Replay passes its sections on. Nothing needs to be closed: the
// buffers never have a file. It is not safe for concurrent use.
type Sections struct{ held []section }

type section struct {
	tag   format.Tag
	flags format.Flags
	data  *Buffer
}

// Begin implements format.SectionWriter.
func (s *Sections) Begin(tag format.Tag, flags format.Flags) error {
	s.held = append(s.held, section{tag, flags, NewBuffer(BufferConfig{Memory: math.MaxInt64})})
	return nil
}

// Write implements format.SectionWriter.
func (s *Sections) Write(p []byte) (int, error) { return s.held[len(s.held)-1].data.Write(p) }

// End implements format.SectionWriter.
func (s *Sections) End() error { return nil }

// WriteSection implements format.SectionWriter.
func (s *Sections) WriteSection(tag format.Tag, flags format.Flags, data []byte) error {
	_ = s.Begin(tag, flags) // never fails
	_, err := s.Write(data)
	return err
}

// Replay writes all sections in order. It leaves all checks to w.
func (s *Sections) Replay(w format.SectionWriter) error {
	for _, held := range s.held {
		_ = w.Begin(held.tag, held.flags) // the writer's errors stay until End
		_, err := held.data.WriteTo(w)
		if err = errors.Join(err, w.End()); err != nil {
			return fmt.Errorf("write held section %s: %w", held.tag, err)
		}
	}
	return nil
}
