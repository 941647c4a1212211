package search

import (
	"math"
	"sync"
)

// Showing fifty files can take longer than finding them. Free processors show files from the last
// one backwards, while the search itself shows them from the first one on. A file from another
// processor counts only if it is what the search would have shown.

// leastParallel is the least number of files that is worth the help of another processor.
const leastParallel = 8

// parallelShow has files shown on other processors than the search's own.
type parallelShow struct {
	*team
	hits []Hit

	mu sync.Mutex
	// next and end bound the hits that no goroutine has taken yet.
	next, end int
	files     []*FileMatch // by hit; nil if not shown here
}

// showInParallel starts to show hits on the free processors; it returns nil if that is not worth it.
func (s *search) showInParallel(hits []Hit) *parallelShow {
	if len(hits) < leastParallel && s.opts.helpers == 0 || s.opts.Explain || s.opts.MaxMatchesPerFile == 0 {
		return nil
	}
	p := &parallelShow{hits: hits, end: len(hits), files: make([]*FileMatch, len(hits))}
	// The search itself meets the error that ended a helper, or does not need the file.
	p.team = s.team(nil, func(*search) {}, p.help)
	return p
}

// help shows hits from the last one backwards, within the room of one answer.
func (p *parallelShow) help(s *search) error {
	for left, room := s.opts.MaxBytes, int64(math.MaxInt64); ; {
		p.mu.Lock()
		if p.end--; p.end < p.next {
			p.end++
			p.mu.Unlock()
			return nil
		}
		i := p.end
		p.mu.Unlock()
		if err := s.look(); err != nil {
			return err
		}
		if s.opts.MaxBytes > 0 {
			room = left
		}
		f, err := s.file(&p.hits[i], room)
		if err != nil {
			return err
		}
		p.files[i] = &f
		if left -= f.Size(); s.opts.MaxBytes > 0 && left < 0 {
			return nil
		}
	}
}

// take returns the file of a hit if another processor has shown it. Otherwise it leaves the hit to
// the search.
func (p *parallelShow) take(i int) *FileMatch {
	if p == nil {
		return nil
	}
	p.mu.Lock()
	if i < p.end {
		p.next = i + 1
		p.mu.Unlock()
		return nil
	}
	p.mu.Unlock()
	p.working.Wait()
	return p.files[i]
}

// join waits for the other processors and adds what they took to the search.
func (p *parallelShow) join(s *search) {
	if p == nil {
		return
	}
	p.mu.Lock()
	p.next = p.end
	p.mu.Unlock()
	p.team.end(func(helper *search) { s.stats.Add(helper.stats) })
}
