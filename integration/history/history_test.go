package history_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/trawl-search/trawl/integration/history"
)

const repo = "example.org/repo"

// tape plays operations, one after the other unless begin starts them early, and collects
// the changes that they make.
type tape struct {
	t *testing.T
	*history.History
	writes *[]history.Write
}

func newTape(t *testing.T) tape { return tape{t, history.New(), new([]history.Write)} }

func (p tape) begin(client int, kind history.Kind) *history.Operation {
	time.Sleep(time.Microsecond) // Porcupine takes the same moment for overlapping
	return p.Begin(client, history.Call{Repo: repo, Kind: kind})
}

// do plays an operation that changes nothing.
func (p tape) do(kind history.Kind, a history.Answer) {
	p.End(p.begin(0, kind), a)
}

// change plays a put or delete that takes effect.
func (p tape) change(kind history.Kind, a history.Answer) {
	p.do(kind, a)
	p.wrote(kind, a)
}

// wrote adds a change.
func (p tape) wrote(kind history.Kind, a history.Answer) {
	*p.writes = append(*p.writes, history.Write{Kind: kind, Answer: a})
}

func (p tape) published(generation, epoch uint64, commit int) {
	p.wrote(history.Publish, history.Answer{Generation: generation, Epoch: epoch, Commit: commit})
}

func (p tape) check() (dir string, err error) {
	dir = filepath.Join(p.t.TempDir(), "pages")
	return dir, errors.Join(p.Written(repo, *p.writes), p.Check(time.Minute, dir))
}

func put(epoch uint64) history.Answer { return history.Answer{Epoch: epoch} }
func deleted(at int64) history.Answer { return history.Answer{Revision: at} }
func commit(n int) history.Answer     { return history.Answer{Commit: n} }
func list(g uint64) history.Answer    { return history.Answer{Generation: g} }
func state(e, p, g uint64) history.Answer {
	return history.Answer{Epoch: e, PublishedEpoch: p, Generation: g}
}

var missing = history.Answer{Missing: true}

// life is a right history of a repo.
func life(p tape) {
	p.do(history.Status, missing)
	p.change(history.Put, put(1))
	p.do(history.Search, commit(0))
	p.do(history.Status, state(1, 0, 0))
	slow := p.begin(1, history.Search) // begins before the publication and may see it or not
	p.published(1, 1, 1)
	p.do(history.Status, state(1, 1, 1))
	p.do(history.Search, commit(1))
	p.End(slow, commit(0))
	p.change(history.Put, put(2))
	p.published(2, 2, 3)
	p.do(history.List, list(2))
	p.change(history.Delete, deleted(5))
	p.do(history.Search, commit(0))
	p.do(history.Delete, missing)
	p.change(history.Put, put(3))
	p.published(3, 3, 4)
	p.do(history.Search, commit(4))
	p.change(history.Put, put(4))
	p.published(3, 4, 4)
	p.do(history.Status, state(4, 4, 3))
}

func TestRightHistory(t *testing.T) {
	p := newTape(t)
	life(p)
	if _, err := p.check(); err != nil {
		t.Error(err)
	}
}

// TestWrongHistories: Check finds each way in which a cluster could break its promises, and
// writes a page that shows it.
func TestWrongHistories(t *testing.T) {
	for name, wrong := range map[string]func(tape){
		"a search finds an older commit":      func(p tape) { p.do(history.Search, commit(1)) },
		"a search finds nothing":              func(p tape) { p.do(history.Search, commit(0)) },
		"a list has an older generation":      func(p tape) { p.do(history.List, list(2)) },
		"a list has one never published":      func(p tape) { p.do(history.List, list(4)) },
		"a status has an older generation":    func(p tape) { p.do(history.Status, state(4, 3, 3)) },
		"an acknowledged request is lost":     func(p tape) { p.do(history.Put, put(5)) },
		"an epoch is given to two requests":   func(p tape) { p.do(history.Put, put(4)) },
		"a request is counted twice":          func(p tape) { p.change(history.Put, put(6)) },
		"an acknowledged deletion is lost":    func(p tape) { p.do(history.Delete, deleted(9)) },
		"a deleted repo is found":             func(p tape) { p.change(history.Delete, deleted(9)); p.do(history.Search, commit(4)) },
		"a deletion is undone":                func(p tape) { p.change(history.Delete, deleted(9)); p.do(history.Status, state(4, 4, 3)) },
		"a repo is missing":                   func(p tape) { p.do(history.Delete, missing) },
		"a generation is published twice":     func(p tape) { p.do(history.Search, commit(5)); p.published(3, 4, 5) },
		"a generation is left out":            func(p tape) { p.do(history.List, list(5)); p.published(5, 4, 4) },
		"an older request is published again": func(p tape) { p.do(history.List, list(4)); p.published(4, 3, 4) },
		"one from before a deletion is revived": func(p tape) {
			p.change(history.Delete, deleted(9))
			p.change(history.Put, put(5))
			p.do(history.List, list(4))
			p.published(4, 4, 4)
		},
		"a deletion is told with the moment of another": func(p tape) {
			p.do(history.Delete, deleted(9))
			p.wrote(history.Delete, deleted(8))
		},
		"changes were made in another order than callers saw": func(p tape) {
			p.do(history.Put, put(6))
			p.do(history.Put, put(5))
			p.wrote(history.Put, put(5))
			p.wrote(history.Put, put(6))
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := newTape(t)
			life(p)
			wrong(p)
			dir, err := p.check()
			if !errors.Is(err, history.ErrNotLinearizable) {
				t.Fatalf("the checker says %v", err)
			}
			page := filepath.Join(dir, "example.org_repo.html")
			if info, err := os.Stat(page); err != nil || info.Size() == 0 {
				t.Errorf("no page: %v", err)
			}
		})
	}
}

// TestUnknownOutcome: a request without an answer may take effect at once, late or never,
// but only once.
func TestUnknownOutcome(t *testing.T) {
	for name, tt := range map[string]struct {
		then func(tape)
		want error
	}{
		"never":   {func(p tape) { p.change(history.Put, put(2)) }, nil},
		"at once": {func(p tape) { p.wrote(history.Put, put(2)); p.change(history.Put, put(3)) }, nil},
		"late": {func(p tape) {
			p.change(history.Put, put(2))
			p.wrote(history.Put, put(3))
			p.do(history.Status, state(3, 0, 0))
		}, nil},
		"published": {func(p tape) { p.wrote(history.Put, put(2)); p.do(history.Search, commit(1)); p.published(1, 2, 1) }, nil},
		"twice": {func(p tape) {
			p.wrote(history.Put, put(2))
			p.change(history.Put, put(3))
			p.wrote(history.Put, put(4))
			p.change(history.Put, put(5))
		}, history.ErrNotLinearizable},
		"taken back": {func(p tape) {
			p.wrote(history.Put, put(2))
			p.change(history.Put, put(3))
			p.do(history.Status, state(2, 0, 0))
		}, history.ErrNotLinearizable},
	} {
		t.Run(name, func(t *testing.T) {
			p := newTape(t)
			p.change(history.Put, put(1))
			p.Lost(p.begin(1, history.Put))
			tt.then(p)
			if _, err := p.check(); !errors.Is(err, tt.want) {
				t.Errorf("the checker says %v, want %v", err, tt.want)
			}
		})
	}
}

// TestChangesOfNobody: a change that nobody asked for is reported.
func TestChangesOfNobody(t *testing.T) {
	for _, w := range []history.Write{
		{Kind: history.Publish, Answer: history.Answer{Generation: 1, Epoch: 2}},
		{Kind: history.Put, Answer: put(2)},
		{Kind: history.Delete, Answer: deleted(9)},
	} {
		p := newTape(t)
		p.change(history.Put, put(1))
		p.wrote(w.Kind, w.Answer)
		if err := p.Written(repo, *p.writes); !errors.Is(err, history.ErrNotLinearizable) {
			t.Errorf("%v, for which nobody called: %v", w, err)
		}
	}
}

// TestFailedReadsSayNothing: a read that was not answered is not judged.
func TestFailedReadsSayNothing(t *testing.T) {
	p := newTape(t)
	life(p)
	p.begin(2, history.Search)
	if _, err := p.check(); err != nil {
		t.Error(err)
	}
	if n := p.Counts()[history.Search]; n != 5 {
		t.Errorf("%d searches, want 5", n)
	}
}
