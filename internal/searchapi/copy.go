package searchapi

import (
	"google.golang.org/protobuf/reflect/protoreflect"

	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

// WithChunks returns a copy of a file that has other chunks. The copy shares memory with
// the file.
func WithChunks(f *searchv1.FileMatch, chunks []*searchv1.ChunkMatch) *searchv1.FileMatch {
	c := &searchv1.FileMatch{}
	copyWithout(c.ProtoReflect(), f.ProtoReflect(), "chunks")
	c.Chunks = chunks
	return c
}

func withoutSkipped(e *searchv1.RepoEntry) *searchv1.RepoEntry {
	c := &searchv1.RepoEntry{}
	copyWithout(c.ProtoReflect(), e.ProtoReflect(), "skipped_files")
	return c
}

// copyWithout copies all fields of a message but one to an empty message of the same type.
// It copies by reflection, so that it includes the fields that are added later, and the
// unknown fields of a peer of another version. The messages share memory.
func copyWithout(to, from protoreflect.Message, field protoreflect.Name) {
	from.Range(func(fd protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		if fd.Name() != field {
			to.Set(fd, v)
		}
		return true
	})
	to.SetUnknown(from.GetUnknown())
}
