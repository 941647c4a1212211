// Package localindex keeps an index of a folder in a folder of its own, and brings it up to date with the
// files. It finds the files that may have a matching line without reading unchanged ones.
//
//	record   the files and folders, with the sizes and times they had, and which shard holds each
//	shard    files as they were; of one that changed since, the record says so
//	lock     held by the process that writes; others search with what is there
//
// An index holds nothing that the folder does not: it may be deleted at any time.
package localindex

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/trawl-search/trawl/index/format"
	"github.com/trawl-search/trawl/index/query"
	"github.com/trawl-search/trawl/index/search"
	"github.com/trawl-search/trawl/internal/grep/ignore"
)

// Options of an index.
type Options struct {
	// Cache is the folder in which indexes are kept. With "" none is kept.
	Cache string
	// Ignore chooses the files. With globs the index is used, but not changed.
	Ignore ignore.Options
	// Now is the time by the clock of files. Nil means the clock of this machine.
	Now func() time.Time
}

// Index is the index of a folder, for one process and one search at a time. It may be that of a folder above, which has its files too.
type Index struct {
	opts   Options
	folder string // that is searched
	root   string // of the index: the folder, or one above it
	below  string // path of the folder in root, "" for root itself
	path   string // of the folder from the working directory, for Ignore.Globs; "" for that itself
	dir    string // of the index
	record *record
	// relisted is set if folders differ from the record.
	relisted bool
	// damage is why the stored index could not be used, nil if it could.
	damage error
	// unusable is why no index can be kept, nil if one can.
	unusable error
}

// Open reads the index of a folder. A missing or damaged index is empty: see Damage. So is one that cannot be
// read, which Update reports.
func Open(root string, opts Options) (*Index, error) {
	path := fromHere(root)
	root, err := resolved(root)
	if err != nil {
		return nil, err
	}
	if opts.Now == nil {
		opts.Now = time.Now
	}
	x := &Index{opts: opts, folder: root, path: path}
	if !x.openAbove() {
		x.openOwn()
	}
	return x, nil
}

// openOwn opens the index of the folder itself.
func (x *Index) openOwn() {
	x.root, x.below, x.record = x.folder, "", newRecord(x.folder)
	if x.opts.Cache == "" {
		x.unusable = errors.New("there is no folder for it")
		return
	}
	x.dir = place(x.root, x.opts)
	switch stored, err := load(x.dir, x.root); {
	case errors.Is(err, format.ErrCorrupt):
		x.damage = err
	case err != nil:
		x.unusable = err
	case stored.root == x.root:
		x.record = stored
	}
}

// openAbove opens the index of the nearest folder above that has one, unless that passes the folder over. It reports whether there is one.
func (x *Index) openAbove() bool {
	if x.opts.Cache == "" {
		return false
	}
	for at := filepath.Dir(x.folder); ; at = filepath.Dir(at) {
		dir := place(at, x.opts)
		if stored, err := load(dir, at); err == nil && stored.root == at && stored.generation > 0 {
			x.root, x.below, x.dir, x.record = at, strings.TrimPrefix(strings.TrimPrefix(x.folder, at), "/"), dir, stored
			return x.mayHave(stored.tree)
		}
		if at == filepath.Dir(at) {
			return false
		}
	}
}

// mayHave reports whether the index with this tree has the folder, or may have it after a look at what changed.
func (x *Index) mayHave(tree *folder) bool {
	dir := x.root
	for name := range strings.SplitSeq(x.below, "/") {
		below := tree.below(name)
		if below == nil {
			return statFile(dir) != tree.stamp
		}
		tree, dir = below, filepath.Join(dir, name)
	}
	return true
}

// fromHere is the path of a folder from the working directory, "" for that itself.
func fromHere(folder string) string {
	here, err := os.Getwd()
	if err != nil {
		return folder
	}
	if filepath.IsAbs(folder) {
		if folder, err = filepath.Rel(here, folder); err != nil {
			return folder
		}
	}
	if folder = filepath.Clean(folder); folder == "." {
		return ""
	}
	return folder
}

// resolved is the path of a folder without symbolic links.
func resolved(root string) (string, error) {
	info, err := os.Stat(root)
	if err != nil {
		return "", err // it names the path
	}
	if !info.IsDir() {
		return "", fmt.Errorf("%s is not a folder", root)
	}
	if root, err = filepath.Abs(root); err == nil {
		root, err = filepath.EvalSymlinks(root)
	}
	if err != nil {
		return "", fmt.Errorf("finding the path of the folder: %w", err)
	}
	return root, nil
}

// place is the folder of the index of root. Each choice of hidden files and rules has an
// index of its own.
func place(root string, opts Options) string {
	key := fmt.Sprintf("%s\x00hidden=%v rules=%v", root, opts.Ignore.Hidden, !opts.Ignore.NoRules)
	sum := sha256.Sum256([]byte(key))
	return filepath.Join(opts.Cache, hex.EncodeToString(sum[:12]))
}

// Forget deletes the indexes of a folder, for all options, and returns their size in bytes. The folder itself
// may be gone.
func Forget(root, cache string) (size int64, err error) {
	path, err := resolved(root)
	if errors.Is(err, fs.ErrNotExist) {
		path, err = filepath.Abs(root)
	}
	if err != nil {
		return 0, fmt.Errorf("forgetting %s: %w", root, err)
	}
	var errs []error
	for i := range 4 {
		dir := place(path, Options{Cache: cache, Ignore: ignore.Options{Hidden: i&1 != 0, NoRules: i&2 != 0}})
		entries, err := os.ReadDir(dir)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
		for _, e := range entries {
			if info, err := e.Info(); err == nil { // otherwise it is gone
				size += info.Size()
			}
		}
		errs = append(errs, os.RemoveAll(dir))
	}
	return size, errors.Join(errs...)
}

// Damage is why the stored index could not be used, nil if it could. Searches then read all of its
// files, and Update writes it anew.
func (x *Index) Damage() error { return x.damage }

// Candidate is a file that may have a matching line.
type Candidate struct {
	// Path is relative to the folder.
	Path string
	// Found means that the index has a match in the present content of the file. For other
	// files that is unknown.
	Found bool
}

// Candidates returns the files that may have a line that matches needs, in the order of their paths: files that
// changed since they were indexed, and files that the index finds. With nil needs it returns all files.
// Warnings are about files that could not be read.
func (x *Index) Candidates(ctx context.Context, needs query.Q) (files []Candidate, warnings []error, err error) {
	var found []*hits
	group, both := errgroup.WithContext(ctx)
	if needs != nil {
		group.Go(func() (err error) {
			found, err = x.search(both, needs)
			return err
		})
	}
	w := &walker{ctx: both, opts: &x.opts.Ignore, began: x.opts.Now(), passBy: x.dir}
	group.Go(func() error { return x.walk(w) })
	if err := group.Wait(); err != nil {
		return nil, nil, err
	}
	x.relisted = w.listed.Load() > 0
	tree := x.record.tree.below(x.below)
	if tree == nil { // the rules pass it over by now
		x.openOwn()
		return x.Candidates(ctx, needs)
	}
	c := candidates{all: needs == nil, hits: map[uint32]*hits{}}
	for _, h := range found {
		if h.damage != nil {
			if !errors.Is(h.damage, fs.ErrNotExist) { // another process may have replaced it
				x.damage = h.damage
			}
			x.drop(h.shard)
			continue
		}
		c.hits[h.shard] = h
	}
	c.add(tree, x.below)
	for i := range c.files {
		c.files[i].Path = strings.TrimPrefix(strings.TrimPrefix(c.files[i].Path, x.below), "/")
	}
	return c.files, w.errs, nil
}

// walk brings the record of the folder up to date, or that of all of the index if rules above the folder changed.
func (x *Index) walk(w *walker) error {
	outside := w.outside(x.root)
	changed := !slices.Equal(outside, x.record.outside)
	x.record.outside = outside
	all := x.opts.Ignore.Globs != nil
	if f := x.record.tree.below(x.below); x.below != "" && f != nil && !changed && !w.rulesChanged(x.record.tree, x.root, x.below) {
		return w.walk(f, x.folder, x.path, all)
	}
	path := x.path
	if x.below != "" {
		path = fromHere(x.root)
	}
	return w.walk(x.record.tree, x.root, path, changed || all)
}

// hits are the files of a shard that a query finds.
type hits struct {
	shard  uint32
	paths  map[string]bool
	damage error // why the shard could not be searched
}

// search searches each shard.
func (x *Index) search(ctx context.Context, needs query.Q) ([]*hits, error) {
	ready, err := search.Prepare(needs)
	if err != nil {
		return nil, err
	}
	defer ready.Close()
	all := make([]*hits, len(x.record.shards))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(runtime.GOMAXPROCS(0))
	for i, info := range x.record.shards {
		group.Go(func() error {
			all[i] = &hits{shard: info.id, paths: map[string]bool{}}
			err := all[i].search(ctx, shardPath(x.dir, info.id), ready)
			if ctx.Err() == nil {
				all[i].damage, err = err, nil
			}
			return err
		})
	}
	return all, group.Wait()
}

// search fills in the paths.
func (h *hits) search(ctx context.Context, path string, ready *search.Query) (err error) {
	s, err := search.Open(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	result, err := s.Search(ctx, ready, search.Options{MaxFiles: s.Documents()})
	if err != nil {
		return err
	}
	for _, f := range result.Files {
		h.paths[string(f.Path)] = true
	}
	return result.Incomplete
}

func shardPath(dir string, id uint32) string {
	return filepath.Join(dir, fmt.Sprintf("%08d.trawl", id))
}

// drop removes a shard from the record, so that its files count as changed.
func (x *Index) drop(id uint32) {
	x.record.shards = slices.DeleteFunc(x.record.shards, func(s shardInfo) bool { return s.id == id })
	x.record.tree.each(func(f *file) {
		if f.shard == id {
			f.shard = 0
		}
	})
}

// candidates collects files.
type candidates struct {
	all   bool
	hits  map[uint32]*hits
	files []Candidate
}

// add adds the candidates in the folder at a path, in the order of their names.
func (c *candidates) add(f *folder, path string) {
	folders := f.folders
	for i := range f.files {
		file := &f.files[i]
		for len(folders) > 0 && folders[0].name < file.name {
			c.add(folders[0], joined(path, folders[0].name))
			folders = folders[1:]
		}
		hits := c.hits[file.shard]
		if !c.all && hits != nil && len(hits.paths) == 0 {
			continue // its path need not be made
		}
		p := joined(path, file.name)
		found := hits != nil && hits.paths[p]
		if c.all || hits == nil || found {
			c.files = append(c.files, Candidate{p, found})
		}
	}
	for _, below := range folders {
		c.add(below, joined(path, below.name))
	}
}

// joined is the path of an entry of a folder, "" being the root.
func joined(folder, name string) string {
	if folder == "" {
		return name
	}
	return strings.Join([]string{folder, name}, "/")
}
