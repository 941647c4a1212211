package format

import (
	"slices"
	"strconv"
)

// Tag names a section: four ASCII letters, the first in the lowest byte.
type Tag uint32

// String returns the name, or the number if the name is not printable.
func (t Tag) String() string {
	var b [4]byte
	le.PutUint32(b[:], uint32(t))
	for _, c := range b {
		if c < '!' || c > '~' {
			return "0x" + strconv.FormatUint(uint64(t), 16)
		}
	}
	return string(b[:])
}

// Sections of content (package docstore).
const (
	// TagContentInfo holds the counts of blobs, superblocks and bytes.
	TagContentInfo Tag = 'C' | 'I'<<8 | 'N'<<16 | 'F'<<24
	// TagUnits holds the encoded units.
	TagUnits Tag = 'U' | 'N'<<8 | 'I'<<16 | 'T'<<24
	// TagUnitOffsets holds the start of each unit.
	TagUnitOffsets Tag = 'U' | 'O'<<8 | 'F'<<16 | 'F'<<24
	// TagDictionaries holds the dictionaries that neighbouring units share.
	TagDictionaries Tag = 'D' | 'I'<<8 | 'C'<<16 | 'T'<<24
	// TagLines holds the newlines before each unit.
	TagLines Tag = 'L' | 'I'<<8 | 'N'<<16 | 'E'<<24
	// TagBlobStarts holds the start of each blob in the concatenated content.
	TagBlobStarts Tag = 'B' | 'L'<<8 | 'E'<<16 | 'N'<<24
	// TagBlobSuperblocks holds the first superblock of each blob.
	TagBlobSuperblocks Tag = 'B' | 'S'<<8 | 'U'<<16 | 'P'<<24
)

// Sections of documents (package docstore).
const (
	// TagDocsInfo holds counts and widths.
	TagDocsInfo Tag = 'D' | 'I'<<8 | 'N'<<16 | 'F'<<24
	// TagRepos holds the repos' records.
	TagRepos Tag = 'R' | 'E'<<8 | 'P'<<16 | 'O'<<24
	// TagRepoOffsets holds the start of each repo's record.
	TagRepoOffsets Tag = 'R' | 'O'<<8 | 'F'<<16 | 'F'<<24
	// TagRepoDocs holds the first document of each repo.
	TagRepoDocs Tag = 'R' | 'D'<<8 | 'O'<<16 | 'C'<<24
	// TagRepoRanks holds the rank of each repo. It is optional: without it all ranks are 0.
	TagRepoRanks Tag = 'R' | 'A'<<8 | 'N'<<16 | 'K'<<24
	// TagNames holds the encoded units of all paths, concatenated.
	TagNames Tag = 'N' | 'A'<<8 | 'M'<<16 | 'E'<<24
	// TagNameOffsets holds the start of each unit of names.
	TagNameOffsets Tag = 'N' | 'O'<<8 | 'F'<<16 | 'F'<<24
	// TagNameStarts holds the start of each document's path in the names.
	TagNameStarts Tag = 'N' | 'D'<<8 | 'O'<<16 | 'C'<<24
	// TagFirstDocs holds the first document of each blob.
	TagFirstDocs Tag = 'F' | 'D'<<8 | 'O'<<16 | 'C'<<24
	// TagRepeatDocs holds the documents whose blob has an earlier document.
	TagRepeatDocs Tag = 'R' | 'P'<<8 | 'D'<<16 | 'O'<<24
	// TagRepeatBlobs holds the blob of each of TagRepeatDocs.
	TagRepeatBlobs Tag = 'R' | 'P'<<8 | 'B'<<16 | 'L'<<24
	// TagSharedBlobs holds the blobs of TagRepeatBlobs in ascending order.
	TagSharedBlobs Tag = 'S' | 'H'<<8 | 'B'<<16 | 'L'<<24
	// TagSharedDocs holds the document of each of TagSharedBlobs.
	TagSharedDocs Tag = 'S' | 'H'<<8 | 'D'<<16 | 'O'<<24
	// TagSkipDocs holds the documents without content.
	TagSkipDocs Tag = 'S' | 'K'<<8 | 'D'<<16 | 'O'<<24
	// TagSkips holds reason and size of each of TagSkipDocs.
	TagSkips Tag = 'S' | 'K'<<8 | 'I'<<16 | 'P'<<24
	// TagLanguageNames holds the names of languages.
	TagLanguageNames Tag = 'L' | 'N'<<8 | 'A'<<16 | 'M'<<24
	// TagLanguages holds the language of each document.
	TagLanguages Tag = 'L' | 'A'<<8 | 'N'<<16 | 'G'<<24
	// TagBranchSets holds the distinct sets of branches.
	TagBranchSets Tag = 'B' | 'S'<<8 | 'E'<<16 | 'T'<<24
	// TagBranchSetOffsets holds the start of each set.
	TagBranchSetOffsets Tag = 'B' | 'S'<<8 | 'O'<<16 | 'F'<<24
	// TagDocBranches holds the set of branches of each document.
	TagDocBranches Tag = 'D' | 'B'<<8 | 'R'<<16 | 'A'<<24
	// TagOIDs holds the object ids of blobs and of documents without content.
	TagOIDs Tag = 'O' | 'I'<<8 | 'D'<<16 | 'S'<<24
)

// Sections of the n-gram index (packages ngram and postings), over content and
// over names.
const (
	// TagNgrams holds the n-gram offset table of content.
	TagNgrams Tag = 'N' | 'G'<<8 | 'R'<<16 | 'M'<<24
	// TagPostings holds the posting lists of content.
	TagPostings Tag = 'P' | 'O'<<8 | 'S'<<16 | 'T'<<24
	// TagNameNgrams holds the n-gram offset table of names.
	TagNameNgrams Tag = 'N' | 'N'<<8 | 'G'<<16 | 'M'<<24
	// TagNamePostings holds the posting lists of names.
	TagNamePostings Tag = 'N' | 'P'<<8 | 'S'<<16 | 'T'<<24
)

// Sections of the index of words (packages words and postings).
const (
	// TagWordInfo holds counts.
	TagWordInfo Tag = 'W' | 'I'<<8 | 'N'<<16 | 'F'<<24
	// TagLexicon holds the words, sorted, in blocks.
	TagLexicon Tag = 'W' | 'L'<<8 | 'E'<<16 | 'X'<<24
	// TagLexiconOffsets holds the end of each block of words.
	TagLexiconOffsets Tag = 'W' | 'O'<<8 | 'F'<<16 | 'F'<<24
	// TagLexiconSamples holds the first words of some blocks of words.
	TagLexiconSamples Tag = 'W' | 'S'<<8 | 'M'<<16 | 'P'<<24
	// TagLexiconNgrams holds the n-gram offset table of the words.
	TagLexiconNgrams Tag = 'W' | 'N'<<8 | 'G'<<16 | 'M'<<24
	// TagLexiconPostings holds the posting lists of the words' n-grams.
	TagLexiconPostings Tag = 'W' | 'N'<<8 | 'P'<<16 | 'S'<<24
	// TagWordPostings holds the posting list of each word.
	TagWordPostings Tag = 'W' | 'P'<<8 | 'S'<<16 | 'T'<<24
	// TagWordTable holds the end of each word's list.
	TagWordTable Tag = 'W' | 'T'<<8 | 'A'<<16 | 'B'<<24
	// TagOpaque holds the superblocks that words do not answer for.
	TagOpaque Tag = 'W' | 'O'<<8 | 'P'<<16 | 'Q'<<24
	// TagParts holds the parts of words that have posting lists of their own.
	TagParts Tag = 'W' | 'P'<<8 | 'R'<<16 | 'T'<<24
	// TagDefinitions identifies what found the definitions that TagWordPostings
	// marks. A reader that does not know it finds them in the text.
	TagDefinitions Tag = 'W' | 'D'<<8 | 'E'<<16 | 'F'<<24
)

// tags are all tags that this version knows. A required section with another
// tag needs a newer reader.
var tags = []Tag{
	TagContentInfo, TagUnits, TagUnitOffsets, TagDictionaries, TagLines, TagBlobStarts, TagBlobSuperblocks,
	TagDocsInfo, TagRepos, TagRepoOffsets, TagRepoDocs, TagRepoRanks, TagNames, TagNameOffsets, TagNameStarts,
	TagFirstDocs, TagRepeatDocs, TagRepeatBlobs, TagSharedBlobs, TagSharedDocs, TagSkipDocs, TagSkips,
	TagLanguageNames, TagLanguages, TagBranchSets, TagBranchSetOffsets, TagDocBranches, TagOIDs,
	TagNgrams, TagPostings, TagNameNgrams, TagNamePostings,
	TagWordInfo, TagLexicon, TagLexiconOffsets, TagLexiconSamples, TagLexiconNgrams, TagLexiconPostings,
	TagWordPostings, TagWordTable, TagOpaque, TagParts, TagDefinitions,
}

// bulk lists the large sections, of which a search reads small parts. They come first in a shard.
var bulk = []Tag{
	TagUnits, TagPostings, TagLexicon, TagLexiconPostings, TagWordPostings,
}

// inTail reports whether a section belongs to the tail of a shard, which has all that says where in the other sections something
// is. It is a few hundredths of the shard, so that a reader of a remote one loads it at once.
func (t Tag) inTail() bool { return slices.Contains(tags, t) && !slices.Contains(bulk, t) }

// Flags say how a reader treats a section.
type Flags uint32

// Flags of a section.
const (
	// Optional sections may be skipped by readers that do not know their tag.
	Optional Flags = 0
	// Required sections must be understood: a reader that does not know the tag
	// refuses the shard.
	Required Flags = 1 << 0

	knownFlags = Required
)
