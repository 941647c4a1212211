package shard

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/trawl-search/trawl/index/docstore"
	"github.com/trawl-search/trawl/index/postings"
	"github.com/trawl-search/trawl/index/query"
	"github.com/trawl-search/trawl/index/rank"
)

// search is the state of one search of one shard.
type search struct {
	fileName    string
	ctx         context.Context
	deadline    time.Time
	hasDeadline bool
	ticks       uint32

	docs      *docstore.Docs
	content   *docstore.Content
	shardText *postings.Index
	names     *postings.Index

	opts  Options
	repos []docstore.Repo
	live  []bool // by repo: may be read
	// languages of the shard, ascending
	languages []string
	stats     Stats
	best      best

	*scratch
}

// scratch is memory that searches of a shard reuse.
type scratch struct {
	reader    *docstore.Reader
	text      blobText
	buf, edge []byte
	doc       document
	gathered  gathered
}

// Search finds the documents that q matches. When the context ends first, the
// result holds what was found by then and says why in Incomplete; an error
// means that the shard could not be read (format.ErrCorrupt) or that the query
// cannot be answered (query.ErrNoSymbols, an unresolved type:repo).
func (s *Shard) Search(ctx context.Context, q query.Q, opts Options) (*Result, error) {
	var res *Result
	err := s.with(ctx, opts, func(run *search) error {
		err := run.each(q, run.hit)
		if err != nil && !isContextError(err) {
			return err
		}
		res = &Result{Incomplete: err}
		if res.Files, err = run.files(); err != nil {
			return err
		}
		run.countReads()
		res.Stats = run.stats
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("search shard %s: %w", s.Name(), err)
	}
	return res, nil
}

func isContextError(err error) bool {
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
}

var scratches sync.Pool

// with runs f on a fresh search, and turns a fault of the mapping into an error.
func (s *Shard) with(ctx context.Context, opts Options, f func(*search) error) error {
	mem, ok := scratches.Get().(*scratch)
	if !ok {
		mem = new(scratch)
	}
	defer scratches.Put(mem)
	mem.reader = s.content.NewReader()
	mem.text.reader, mem.text.valid = mem.reader, false
	run := &search{fileName: s.Name(), ctx: ctx, docs: s.docs, content: s.content, shardText: s.text, names: s.names, opts: opts, scratch: mem}
	run.deadline, run.hasDeadline = ctx.Deadline()
	run.best = best{limit: opts.MaxFiles}
	mem.doc.s = run
	defer func() { mem.doc.s, mem.reader, mem.text.reader = nil, nil, nil }()
	return s.file.Guard(func() error {
		if err := run.loadRepos(); err != nil {
			return err
		}
		return f(run)
	})
}

func (s *search) loadRepos() (err error) {
	if s.languages, err = s.docs.Languages(); err != nil {
		return err
	}
	for i := range s.docs.Repos() {
		repo, err := s.docs.Repo(i)
		if err != nil {
			return err
		}
		s.repos = append(s.repos, repo)
		s.live = append(s.live, s.opts.Repos == nil || s.opts.Repos(repo.Name))
	}
	return nil
}

// tick is called in every long loop: it returns the context's error once it
// ended, looking at the clock now and then.
func (s *search) tick() error {
	if s.ticks++; s.ticks&15 != 0 {
		return nil
	}
	if s.hasDeadline && !time.Now().Before(s.deadline) {
		return context.DeadlineExceeded
	}
	return s.ctx.Err()
}

// each calls found for every document that q matches, blob by blob.
func (s *search) each(q query.Q, found func(node) error) error {
	root, err := s.compile(q)
	if err != nil {
		return err
	}
	if err := s.ctx.Err(); err != nil || !slices.Contains(s.live, true) {
		return err
	}
	it, err := s.candidates(root)
	if err != nil {
		return err
	}
	for blob, ok, err := it.seek(0); ok || err != nil; blob, ok, err = it.seek(blob + 1) {
		if err != nil {
			return err
		}
		if err := s.tick(); err != nil {
			return err
		}
		if err := s.eachOf(blob, root, found); err != nil {
			return err
		}
	}
	return nil
}

func (s *search) candidates(root node) (blobs, error) {
	p, err := root.plan()
	if err != nil {
		return nil, err
	}
	if !p.narrow() {
		return everyBlob(s.content.Blobs()), nil
	}
	return p.iterator()
}

// eachOf decides the documents of one blob.
func (s *search) eachOf(blob uint32, root node, found func(node) error) error {
	for doc, err := range s.docs.DocsOf(blob) {
		if err != nil {
			return err
		}
		repo, err := s.docs.RepoOf(doc)
		if err != nil {
			return err
		}
		if !s.live[repo] {
			continue
		}
		s.stats.FilesConsidered++
		s.doc.reset(doc, blob, repo)
		ok, err := root.matches(&s.doc)
		if err != nil {
			return err
		}
		if ok {
			if err := found(root); err != nil {
				return err
			}
		}
	}
	return nil
}

// hit counts the document and keeps it when it is among the best.
func (s *search) hit(root node) error {
	g := &s.gathered
	g.reset()
	if err := root.collect(&s.doc, g); err != nil {
		return err
	}
	shown := settle(g.content)
	onPath := len(shown) == 0
	if onPath {
		shown = settle(g.name)
	}
	s.stats.FilesMatched++
	s.stats.Matches += uint64(len(shown))
	if s.opts.MaxFiles == 0 {
		return nil
	}
	path, err := s.doc.loadPath()
	if err != nil {
		return err
	}
	features := g.features(path, len(shown))
	h := hit{doc: s.doc.id, blob: s.doc.blob, repo: s.doc.repo, score: features.Score(), matches: len(shown), onPath: onPath}
	if skip, err := s.beforePage(h); err != nil || skip || !s.best.admits(h) {
		return err
	}
	h.features = features
	h.spans = slices.Clone(shown[:min(len(shown), s.opts.MaxMatchesPerFile)])
	s.best.add(h)
	return nil
}

// features rate the gathered ranges. The name counts even where the content is shown.
func (g *gathered) features(path []byte, matches int) rank.Document {
	d := rank.Document{Matched: g.atomsMatched, Atoms: g.atoms, Matches: matches, LowPriority: rank.LowPriority(path)}
	for _, s := range g.content {
		d.Content = max(d.Content, s.quality)
	}
	for _, s := range g.name {
		d.Name = max(d.Name, rank.OfName(path, int(s.start), int(s.end)))
	}
	return d
}

// beforePage reports whether the document was on an earlier page.
func (s *search) beforePage(h hit) (bool, error) {
	after := s.opts.After
	if after == nil || h.score < after.Score {
		return false, nil
	}
	if h.score > after.Score {
		return true, nil
	}
	if c := strings.Compare(s.repos[h.repo].Name, after.Repo); c != 0 {
		return c < 0, nil
	}
	if c := bytes.Compare(s.doc.path, after.Path); c != 0 {
		return c < 0, nil
	}
	oid, err := s.docs.OID(h.doc)
	return bytes.Compare(oid, after.Blob) <= 0, err
}

// countReads takes over what the reader counted.
func (s *search) countReads() {
	s.stats.UnitsDecoded, s.stats.BytesDecoded = s.reader.UnitsDecoded, s.reader.BytesDecoded
}
