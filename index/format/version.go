package format

// Versions of the format. A shard names the version that wrote it and the
// lowest version that a reader must have. Both are increased here and nowhere
// else, and each version says what it added.
const (
	// Version1 is the first: the frame, content and documents (docstore),
	// n-gram offset tables, posting lists and masks (ngram, postings).
	Version1 uint32 = 1
	// Version2 added an index of words (words). The n-gram index of its content
	// has windows of word bytes only where superblocks are opaque (ngram).
	Version2 uint32 = 2

	// WriterVersion is what Writer writes.
	WriterVersion = Version2
	// MinReaderVersion is the lowest reader version that understands what
	// Writer writes.
	MinReaderVersion = Version2
	// ReaderVersion is the newest MinReaderVersion that File understands.
	ReaderVersion = Version2
	// OldestReadable is the oldest WriterVersion that File understands.
	OldestReadable = Version1
)

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
