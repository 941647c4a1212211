package shard

import "sync"

// Showing fifty files can take longer than finding them. Processors that are free show files
// from the last one on, while the search itself shows them from the first one on. A file
// that another processor has shown counts only if it is what the search would have shown.

// leastBeside is the number of files that are worth the help of another processor.
const leastBeside = 8

// besides are files shown on other processors than the search's own.
type besides struct {
	hits    []Hit
	release func()
	done    sync.WaitGroup
	helpers []*search
	panics  []any

	mu sync.Mutex
	// next and end bound the hits that nobody has begun to show.
	next, end int
	files     []*FileMatch // by hit; nil where it was not shown
}

// showBeside begins to show hits on the processors that are free; nil if there is none.
func (s *search) showBeside(hits []Hit) *besides {
	if len(hits) < leastBeside && s.opts.pieces == 0 || s.opts.Explain || s.opts.MaxMatchesPerFile == 0 {
		return nil
	}
	n, release := s.helpers()
	if n == 0 {
		release()
		return nil
	}
	b := &besides{hits: hits, release: release, end: len(hits), files: make([]*FileMatch, len(hits)), panics: make([]any, n)}
	for i := range n {
		helper := s.shard.begin(s.ctx, s.opts)
		helper.repos = s.repos
		b.helpers = append(b.helpers, helper)
		b.done.Go(func() {
			defer func() { b.panics[i] = recover() }()
			// The search meets what ended the helper itself, or has no use for the file.
			_ = s.shard.file.Guard(func() error { return b.help(helper) })
		})
	}
	return b
}

// help shows hits from the last one on, in room for one answer.
func (b *besides) help(s *search) error {
	room := s.opts.MaxBytes
	for {
		b.mu.Lock()
		if b.end--; b.end < b.next {
			b.end++
			b.mu.Unlock()
			return nil
		}
		i := b.end
		b.mu.Unlock()
		if err := s.look(); err != nil {
			return err
		}
		s.limitRoom(room, s.opts.MaxBytes > 0)
		f, err := s.file(&b.hits[i])
		if err != nil || s.noRoom {
			return err
		}
		room -= f.Size()
		b.files[i] = &f
		if s.opts.MaxBytes > 0 && room < 0 {
			return nil
		}
	}
}

// take returns a hit's file if another processor has shown it, and else leaves the hit to the
// search.
func (b *besides) take(i int) *FileMatch {
	if b == nil {
		return nil
	}
	b.mu.Lock()
	if i < b.end {
		b.next = i + 1
		b.mu.Unlock()
		return nil
	}
	b.mu.Unlock()
	b.done.Wait()
	return b.files[i]
}

// join ends what is done on other processors and adds what it took to the search.
func (b *besides) join(s *search) {
	if b == nil {
		return
	}
	b.mu.Lock()
	b.next = b.end
	b.mu.Unlock()
	b.done.Wait()
	b.release()
	for i, helper := range b.helpers {
		if b.panics[i] != nil {
			panic(b.panics[i]) //nolint:forbidigo // a helper's panic is that of the search
		}
		helper.countReads()
		s.stats.Add(helper.stats)
		helper.release()
	}
}
