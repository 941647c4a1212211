package localindex

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/trawl-search/trawl/index/format"
)

// record is the part of an index outside its shards: the files as they were when they were indexed.
type record struct {
	generation uint64 // one more with each that is written
	root       string // absolute path of the folder
	lastID     uint32 // of shards; ids never repeat, so a process with an older record never reads a shard that is not in it
	outside    []ruleFile
	shards     []shardInfo
	tree       *folder
}

// newRecord returns the record of a folder that was never indexed.
func newRecord(root string) *record { return &record{root: root, tree: new(folder)} }

// shardInfo describes a shard.
type shardInfo struct {
	id    uint32
	bytes int64 // of the files that were indexed
}

const (
	recordName  = "files"
	recordMagic = "trawl local index 2\n"
	recordTag   = format.Tag('F' | 'I'<<8 | 'L'<<16 | 'S'<<24) // in errors
	// deepest bounds the nesting of folders in a record; a path has at most 4,096 bytes.
	deepest = 4096
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// load reads the record in dir, and returns an empty one if there is none. The error for an
// unreadable record wraps format.ErrCorrupt.
func load(dir, root string) (*record, error) {
	data, err := os.ReadFile(filepath.Join(dir, recordName))
	if errors.Is(err, fs.ErrNotExist) {
		return newRecord(root), nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the index: %w", err)
	}
	return decode(data)
}

// rootOf reads the path of the folder from the beginning of the record in dir; not ok if there is none.
func rootOf(dir string) (root string, ok bool) {
	f, err := os.Open(filepath.Join(dir, recordName))
	if err != nil {
		return "", false
	}
	defer func() { _ = f.Close() }() // nothing was written
	head := make([]byte, len(recordMagic)+2*binary.MaxVarintLen64+unix.PathMax)
	n, err := io.ReadFull(f, head)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		return "", false
	}
	d := format.NewDecoder(recordName, recordTag, head[:n])
	magic := string(d.Bytes(len(recordMagic)))
	d.Uvarint() // its generation
	root = string(d.BytesWithLength())
	return root, d.Err() == nil && magic == recordMagic && filepath.IsAbs(root)
}

// save writes the record, whole or not at all.
func (r *record) save(dir string) error {
	r.generation++
	path := filepath.Join(dir, recordName)
	return writeWhole(path, func(f *os.File) error {
		_, err := f.Write(r.encode())
		return err
	})
}

// writeWhole writes a temporary file in the same folder, and then renames it.
func writeWhole(path string, write func(*os.File) error) (err error) {
	f, err := os.OpenFile(path+".tmp", os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("writing the index: %w", err)
	}
	if err := errors.Join(write(f), f.Sync(), f.Close()); err != nil {
		return errors.Join(fmt.Errorf("writing the index: %w", err), os.Remove(f.Name()))
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return fmt.Errorf("writing the index: %w", err)
	}
	return nil
}

func (r *record) encode() []byte {
	b := binary.AppendUvarint([]byte(recordMagic), r.generation)
	b = format.AppendString(b, r.root)
	b = binary.AppendUvarint(b, uint64(r.lastID))
	b = appendRules(b, r.outside)
	b = binary.AppendUvarint(b, uint64(len(r.shards)))
	for _, s := range r.shards {
		b = binary.AppendUvarint(binary.AppendUvarint(b, uint64(s.id)), uint64(s.bytes))
	}
	b = appendFolder(b, r.tree)
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
}

func appendStamp(b []byte, s stamp) []byte {
	b = binary.AppendUvarint(b, uint64(s.size))
	b = binary.LittleEndian.AppendUint64(b, uint64(s.modified))
	b = binary.LittleEndian.AppendUint64(b, uint64(s.changed))
	return binary.LittleEndian.AppendUint64(b, s.inode)
}

func appendRules(b []byte, rules []ruleFile) []byte {
	b = binary.AppendUvarint(b, uint64(len(rules)))
	for _, r := range rules {
		b = appendStamp(format.AppendString(b, r.path), r.stamp)
	}
	return b
}

func appendFolder(b []byte, f *folder) []byte {
	b = appendStamp(format.AppendString(b, f.name), f.stamp)
	b = appendRules(b, f.rules)
	b = binary.AppendUvarint(b, uint64(len(f.files)))
	var names []byte
	for _, f := range f.files {
		names = append(append(names, f.name...), '/')
	}
	b = format.AppendString(b, names)
	for _, f := range f.files {
		b = binary.AppendUvarint(appendStamp(b, f.stamp), uint64(f.shard))
	}
	b = binary.AppendUvarint(b, uint64(len(f.folders)))
	for _, f := range f.folders {
		b = appendFolder(b, f)
	}
	return b
}

// decode is the reverse of encode.
func decode(data []byte) (*record, error) {
	body := max(len(data)-crc32.Size, 0)
	d := format.NewDecoder(recordName, recordTag, data[:body])
	if string(d.Bytes(len(recordMagic))) != recordMagic {
		d.Failf("it does not begin as an index of this version does")
	} else if crc32.Checksum(data[:body], castagnoli) != binary.LittleEndian.Uint32(data[body:]) {
		d.Failf("its checksum is wrong")
	}
	r := &record{generation: d.Uvarint(), root: string(d.BytesWithLength()), lastID: uint32(d.Uvarint()), outside: decodeRules(&d)}
	for range d.Count(2) {
		r.shards = append(r.shards, shardInfo{id: uint32(d.Uvarint()), bytes: int64(d.Uvarint())})
	}
	r.tree = decodeFolder(&d, 0)
	if err := d.End(); err != nil {
		return nil, err
	}
	return r, nil
}

const stampSize = 25 // at least

func decodeStamp(d *format.Decoder) stamp {
	return stamp{size: int64(d.Uvarint()), modified: int64(d.U64()), changed: int64(d.U64()), inode: d.U64()}
}

func decodeRules(d *format.Decoder) (rules []ruleFile) {
	for range d.Count(1 + stampSize) {
		rules = append(rules, ruleFile{path: string(d.BytesWithLength()), stamp: decodeStamp(d)})
	}
	return rules
}

func decodeFolder(d *format.Decoder, depth int) *folder {
	if depth > deepest {
		d.Failf("more than %d folders are in one another", deepest)
		return nil
	}
	f := &folder{name: string(d.BytesWithLength()), stamp: decodeStamp(d), rules: decodeRules(d)}
	f.files = make([]file, d.Count(2+stampSize))
	names := string(d.BytesWithLength()) // one string for all
	for i := range f.files {
		f.files[i] = file{stamp: decodeStamp(d), shard: uint32(d.Uvarint())}
		f.files[i].name, names, _ = strings.Cut(names, "/")
	}
	f.folders = make([]*folder, d.Count(4+stampSize))
	for i := range f.folders {
		f.folders[i] = decodeFolder(d, depth+1)
	}
	return f
}
