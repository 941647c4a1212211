// Package format is the frame of a shard: tagged sections, streamed one after
// the other, with checksums and a table of contents at the end.
//
//	offset 0
//	┌──────────────────────────────┐
//	│ header                       │ 16 bytes: magic, versions
//	├──────────────────────────────┤
//	│ section                      │ the sections, back to back, in the
//	│ section                      │ order of the table of contents
//	│ …                            │
//	├──────────────────────────────┤ body length
//	│ checksums                    │ CRC32C of each 16 KiB of all before, 4 bytes each
//	├──────────────────────────────┤
//	│ table of contents            │ 32 bytes for each section
//	├──────────────────────────────┤
//	│ footer                       │ 64 bytes: where the parts above are, magic
//	└──────────────────────────────┘ file size
//
// FORMAT.md in the parent folder has every field. A [Writer] needs no seeking
// and keeps four bytes for each 16 KiB written. A [File] is a mapping of the
// whole file. Opening it reads the end of the file and the checksums, and a
// [Section] checks each 16 KiB the first time a byte of it is read. A sparse
// file ([NewSparse]) also loads bytes when they are read, and a remote one
// ([NewRemote]) has only its tail in place. Data that cannot be decoded gives
// a [*CorruptError] that names file and section.
package format
