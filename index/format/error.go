package format

import (
	"errors"
	"fmt"
)

// Sentinels for errors.Is.
var (
	// ErrCorrupt matches every *CorruptError.
	ErrCorrupt = errors.New("shard is corrupt")
	// ErrVersion means that the shard is sound, but this reader is too old or too new to read it.
	ErrVersion = errors.New("shard version is not supported")
	// ErrMisuse means that code that writes a shard broke the rules of the writer, not that any
	// input was bad.
	ErrMisuse = errors.New("wrong use of a shard writer")
)

// CorruptError says what is wrong with a shard and where. It is an ErrCorrupt.
type CorruptError struct {
	// File is the path of the shard.
	File string
	// Section is the tag of the section, or header, checksums, contents or footer.
	Section string
	// Offset in bytes from the start of the file; -1 if unknown.
	Offset int64
	// Reason in plain words.
	Reason string
}

// Error names file, section and offset.
func (e *CorruptError) Error() string {
	where := fmt.Sprintf("section %s", e.Section)
	if e.Offset >= 0 {
		where += fmt.Sprintf(" at byte %d", e.Offset)
	}
	return fmt.Sprintf("shard %s is corrupt in %s: %s", e.File, where, e.Reason)
}

// Is reports that the error is an ErrCorrupt.
func (e *CorruptError) Is(target error) bool { return target == ErrCorrupt }

// Names of the frame's own parts in a CorruptError.
const (
	partHeader    = "header"
	partChecksums = "checksums"
	partContents  = "contents"
	partFooter    = "footer"
)

func corruptf(file, section string, offset int64, format string, args ...any) error {
	return &CorruptError{File: file, Section: section, Offset: offset, Reason: fmt.Sprintf(format, args...)}
}
