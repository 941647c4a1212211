package source

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"iter"
	"os"
	"slices"
	"strings"
	"syscall"

	"github.com/trawl-search/trawl/index/docstore"
	"github.com/trawl-search/trawl/internal/source/language"
)

// folderBranch is the branch of all documents of a plain folder.
const folderBranch = "HEAD"

// Folder is a Source: the files below a plain folder, read while it is
// enumerated. Symbolic links are listed and not followed, and nothing outside
// of the folder is ever opened, even when the folder changes meanwhile. Git's
// own ".git" entries are left out.
type Folder struct {
	root    *os.Root
	limits  Limits
	omitted int
	seen    int
	buf     []byte
}

// OpenFolder opens a folder; the caller closes it.
func OpenFolder(dir string, limits Limits) (*Folder, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, failure(NotFound, err, "the folder cannot be opened: "+err.Error())
	}
	return &Folder{root: root, limits: limits.withDefaults()}, nil
}

// Branches implements Source.
func (f *Folder) Branches() []docstore.Branch { return []docstore.Branch{{Name: folderBranch}} }

// Total implements Source: the number is not known beforehand.
func (f *Folder) Total() int { return 0 }

// Omitted implements Source.
func (f *Folder) Omitted() int { return f.omitted }

// Close implements Source.
func (f *Folder) Close() error { return f.root.Close() }

// Documents implements Source. A folder that cannot be listed is a document
// that is unreadable.
func (f *Folder) Documents(ctx context.Context) iter.Seq2[*Document, error] {
	return func(yield func(*Document, error) bool) {
		f.omitted, f.seen = 0, 0
		w := folderWalk{Folder: f, ctx: ctx, yield: yield, branches: []uint32{0}}
		w.dir(f.root, "", 0)
	}
}

// folderWalk is one enumeration.
type folderWalk struct {
	*Folder
	ctx      context.Context
	yield    func(*Document, error) bool
	branches []uint32
	detector language.Detector
}

// maxFolderDepth bounds the recursion, and with it the folders open at once.
const maxFolderDepth = 256

// dir yields what is in a folder and below it; false means to stop. The prefix
// of the paths is empty or ends in a slash.
func (w *folderWalk) dir(root *os.Root, prefix string, depth int) bool {
	list, err := entriesOf(root)
	if err != nil {
		return w.unreadable(prefix, err)
	}
	for _, e := range list {
		path := prefix + e.Name()
		switch {
		case w.ctx.Err() != nil:
			w.yield(nil, context.Cause(w.ctx))
			return false
		case e.Name() == ".git":
		case e.IsDir():
			if !w.below(root, e.Name(), path+"/", depth+1) {
				return false
			}
		case !w.emit(w.document(root, path, e)):
			return false
		}
	}
	return true
}

func (w *folderWalk) below(root *os.Root, name, prefix string, depth int) bool {
	if depth > maxFolderDepth {
		return w.emit(&Document{Path: []byte(strings.TrimSuffix(prefix, "/")), Skip: docstore.TooDeep})
	}
	inner, err := root.OpenRoot(name)
	if err != nil {
		return w.unreadable(prefix, err)
	}
	goOn := w.dir(inner, prefix, depth)
	_ = inner.Close() // it was only read
	return goOn
}

// unreadable yields a folder itself; the source's own is an error.
func (w *folderWalk) unreadable(prefix string, err error) bool {
	if prefix == "" {
		return w.yield(nil, failure(Unknown, err, "the folder cannot be read: "+err.Error()))
	}
	return w.emit(&Document{Path: []byte(strings.TrimSuffix(prefix, "/")), Skip: docstore.Unreadable})
}

// entriesOf reads a folder in the order that its entries' paths have: that of a
// folder is followed by a slash.
func entriesOf(root *os.Root) ([]fs.DirEntry, error) {
	dir, err := root.Open(".")
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	list, err := dir.ReadDir(-1)
	key := func(e fs.DirEntry) string {
		if e.IsDir() {
			return e.Name() + "/"
		}
		return e.Name()
	}
	slices.SortFunc(list, func(a, b fs.DirEntry) int { return strings.Compare(key(a), key(b)) })
	return list, err
}

// emit yields a document, unless it is over the limits; false means to stop.
func (w *folderWalk) emit(doc *Document) bool {
	if len(doc.Path) > MaxPath {
		w.omitted++
		return true
	}
	if w.seen++; w.seen > w.limits.MaxDocuments {
		w.yield(nil, failure(TooLarge, nil, "the folder has more documents than the limit"))
		return false
	}
	doc.Branches = w.branches
	return w.yield(doc, nil)
}

func (w *folderWalk) document(root *os.Root, path string, e fs.DirEntry) *Document {
	doc := &Document{Path: []byte(path)}
	if info, err := e.Info(); err == nil {
		doc.Size = uint64(max(info.Size(), 0))
	}
	switch {
	case e.Type()&fs.ModeSymlink != 0:
		doc.Skip = docstore.Symlink
	case !e.Type().IsRegular():
		doc.Skip = docstore.Unreadable
	case doc.Size > uint64(w.limits.MaxFileSize):
		doc.Skip = docstore.TooLarge
	case w.limits.tooDeep(doc.Path):
		doc.Skip = docstore.TooDeep
	default:
		w.read(root, e.Name(), doc)
	}
	return doc
}

// read fills in the content. The file may be another one by now: longer, or a
// pipe, which must not hold the opening up.
func (w *folderWalk) read(root *os.Root, name string, doc *Document) {
	doc.Skip = docstore.Unreadable
	file, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return
	}
	defer file.Close()
	want := int(doc.Size) + 1 // the byte too many tells that it grew
	w.buf = slices.Grow(w.buf[:0], want)[:want]
	n, err := io.ReadFull(file, w.buf)
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		doc.Skip = docstore.NotSkipped
		doc.classify(w.buf[:n], &w.detector)
	}
}
