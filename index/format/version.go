package format

// Version is the version of the format that Writer writes, and the only one that
// File reads. A shard names the version that wrote it and the lowest version that
// a reader must have. After a change, say here what the new version added.
//
// Version 5: parts of words have posting lists. Versions 1 to 4 were never released.
const Version uint32 = 5

// Sizes of the frame, in bytes.
const (
	// HeaderSize is the size of the header.
	HeaderSize = 16
	// FooterSize is the size of the footer.
	FooterSize = 64
	// EntrySize is the size of an entry in the table of contents.
	EntrySize = 32
	// ChecksumBlock is the span that one checksum covers.
	ChecksumBlock = 1 << checksumShift
	// ChecksumSize is the size of one checksum.
	ChecksumSize = 4
	// MaxSections is the most sections of a shard; one with more is corrupt.
	MaxSections = 4096
	// TailSize is how many bytes at the end of a sparse file are read first.
	TailSize = 64 << 10

	checksumShift = 14
)

// Magic numbers at the two ends of a shard.
const (
	HeaderMagic = "TRAWLshd"
	FooterMagic = "TRAWLend"
)
