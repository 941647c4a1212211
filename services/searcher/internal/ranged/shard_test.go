package ranged

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha1"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"reflect"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/trawl-search/trawl/index/build"
	"github.com/trawl-search/trawl/index/docstore"
	"github.com/trawl-search/trawl/index/format"
	"github.com/trawl-search/trawl/index/indextest"
	"github.com/trawl-search/trawl/index/query"
	"github.com/trawl-search/trawl/index/search"
	"github.com/trawl-search/trawl/index/shard"
	"github.com/trawl-search/trawl/internal/testrun"
	"github.com/trawl-search/trawl/services/searcher/internal/disk"
	"github.com/trawl-search/trawl/services/searcher/internal/processor"
)

// built is a corpus as a shard.
func built(t testing.TB, corpus *indextest.Corpus) []byte {
	t.Helper()
	var out bytes.Buffer
	b, err := build.NewBuilder(&out, build.Options{})
	must(t, err)
	for _, r := range corpus.Repos {
		repo := docstore.Repo{Name: r.Name, Archived: r.Archived, Fork: r.Fork, Public: r.Public, Meta: r.Meta, Rank: r.Rank}
		for _, name := range r.Branches {
			repo.Branches = append(repo.Branches, docstore.Branch{Name: name, Commit: "c0ffee"})
		}
		must(t, b.AddRepo(repo))
		for _, d := range documents(r) {
			must(t, b.Add(d))
		}
	}
	_, err = b.Close()
	must(t, err)
	return out.Bytes()
}

func documents(r indextest.Repo) (docs []build.Document) {
	id := func(content []byte) []byte { sum := sha1.Sum(content); return sum[:] }
	for i, d := range r.Documents {
		doc := build.Document{Path: []byte(d.Path), Content: d.Content, Language: d.Language, OID: id(d.Content)}
		for _, name := range d.Branches {
			doc.Branches = append(doc.Branches, uint32(slices.Index(r.Branches, name)))
		}
		slices.Sort(doc.Branches)
		if d.Skipped {
			doc.Skip, doc.Size, doc.OID = docstore.Binary, 1, id([]byte{0, byte(i), byte(i >> 8)})
		}
		docs = append(docs, doc)
	}
	slices.SortFunc(docs, func(a, b build.Document) int {
		return cmp.Or(bytes.Compare(a.Path, b.Path), bytes.Compare(a.OID, b.OID))
	})
	return docs
}

// searchable is what a local shard and a ranged one have in common.
type searchable interface {
	search.Finder
	List(ctx context.Context, q *search.Query, opts search.ListOptions) (*search.ListResult, error)
	File(ctx context.Context, repo string, path []byte, branch string, opts search.Options, part search.Part) (*search.File, error)
	Tree(ctx context.Context, repo string, of search.Options, opts search.TreeOptions) (*search.Tree, error)
}

// answer is everything that a shard returns for a query.
type answer struct {
	files []search.FileMatch
	repos []shard.RepoStats
	file  *search.File
	tree  *search.Tree
}

func (a answer) is(b answer) bool { return reflect.DeepEqual(a, b) }

func answers(ctx context.Context, s searchable, q *search.Query, corpus *indextest.Corpus) (answer, error) {
	found, err := search.Search(ctx, s, q, search.Options{MaxFiles: 10_000, MaxMatchesPerFile: 10_000})
	if err != nil {
		return answer{}, err
	}
	if found.Incomplete != nil {
		return answer{}, found.Incomplete
	}
	listed, err := s.List(ctx, q, search.ListOptions{MaxSkippedFiles: 10})
	if err != nil {
		return answer{}, err
	}
	if listed.Incomplete != nil {
		return answer{}, listed.Incomplete
	}
	repo := corpus.Repos[0]
	file, err := s.File(ctx, repo.Name, []byte(repo.Documents[0].Path), "", search.Options{}, search.Part{})
	if err != nil && !errors.Is(err, search.ErrNoFile) {
		return answer{}, err
	}
	tree, err := s.Tree(ctx, repo.Name, search.Options{}, search.TreeOptions{Branch: repo.Branches[0], Depth: 2, MaxEntries: 100, MaxBytes: 1 << 20})
	if err != nil {
		return answer{}, err
	}
	return answer{found.Files, listed.Repos, file, tree}, nil
}

func prepare(t testing.TB, corpus *indextest.Corpus, text string) *search.Query {
	t.Helper()
	tree, err := query.Parse(text, query.ParseOptions{SyntaxVersion: query.MaxSyntaxVersion})
	must(t, err)
	tree, err = indextest.Resolve(corpus, tree)
	must(t, err)
	q, err := search.Prepare(tree)
	must(t, err)
	return q
}

// pair is a shard by ranges and the same one in memory.
type pair struct {
	*world
	corpus *indextest.Corpus
	local  *search.Shard
	ranged *Shard
	size   int64
}

// newPair makes a pair whose budget is a percentage of the shard's size.
func newPair(t *testing.T, percent int64) *pair {
	t.Helper()
	corpus := &indextest.Corpus{Name: "many"}
	for seed := range uint64(60) {
		for _, r := range indextest.Random(seed).Repos {
			r.Name = fmt.Sprintf("%02d-%s", seed, r.Name)
			corpus.Repos = append(corpus.Repos, r)
		}
	}
	whole := built(t, corpus)
	f, err := format.NewFile("local", whole)
	must(t, err)
	local, err := search.OpenFile(f)
	must(t, err)
	w := newWorld(t, t.TempDir(), max(int64(len(whole))*percent/100, 1), disk.Page)
	t.Cleanup(w.Close)
	p := &pair{world: w, corpus: corpus, local: local, size: int64(len(whole))}
	p.ranged = w.Open(w.put(t, "whole", whole))
	return p
}

// TestSameAsLocal: queries of every kind find by ranges what they find in a local shard, however little room there is on the disk: for
// all of the shard, for less than one query reads, for no tail, for nothing.
func TestSameAsLocal(t *testing.T) {
	for _, percent := range []int64{100, 10, 0} {
		p := newPair(t, percent)
		answered := 0
		for _, q := range indextest.Queries(p.corpus, 5, testrun.Rounds(40, 80)) {
			ready := prepare(t, p.corpus, q.Text)
			if ready == nil {
				continue
			}
			want, err := answers(t.Context(), p.local, ready, p.corpus)
			must(t, err)
			got, err := answers(t.Context(), p.ranged, ready, p.corpus)
			switch {
			case err != nil:
				t.Errorf("%d %%, query %q: %v", percent, q.Text, err)
			case !got.is(want):
				t.Errorf("%d %%, query %q:\n got %+v\nwant %+v", percent, q.Text, got, want)
			default:
				answered++
			}
			p.settle()
			checkRoom(t, p.world)
		}
		t.Logf("%d %% of %d bytes: %d answered, %d reads", percent, p.size, answered, p.source.reads.Load())
		if answered < 20 {
			t.Errorf("%d %%: %d queries were answered", percent, answered)
		}
	}
}

// TestManyUsersOfASmallDisk: many searches at once, of a disk with less room than one of them reads, all end, with the answers of a local
// shard.
func TestManyUsersOfASmallDisk(t *testing.T) {
	for _, percent := range []int64{40, 5} {
		p := newPair(t, percent)
		var users sync.WaitGroup
		for user := range 8 {
			users.Go(func() {
				for _, q := range indextest.Queries(p.corpus, uint64(user), testrun.Rounds(3, 20)) {
					ready := prepare(t, p.corpus, q.Text)
					if ready == nil {
						continue
					}
					want, err := answers(t.Context(), p.local, ready, p.corpus)
					got, err2 := answers(t.Context(), p.ranged, ready, p.corpus)
					if err != nil || err2 != nil || !got.is(want) {
						t.Errorf("%d %%, query %q: %v, %v\n got %+v\nwant %+v", percent, q.Text, err, err2, got, want)
					}
				}
			})
		}
		users.Wait()
		p.settle()
		checkRoom(t, p.world)
		p.mu.Lock()
		views := p.views
		p.mu.Unlock()
		if views != 0 {
			t.Errorf("%d searches are still open", views)
		}
		must(t, p.ranged.Close())
		if used := p.budget.Used(); used != 0 {
			t.Errorf("%d bytes are still taken", used)
		}
	}
}

type brokenReader struct {
	io.ReadCloser
	read func(r io.Reader, p []byte) (int, error)
}

func (b brokenReader) Read(p []byte) (int, error) { return b.read(b.ReadCloser, p) }

// TestBucketThatFails: whatever the bucket does, an answer is right, or an error that names the
// failure. When the bucket works again all answers are right, and damage lasts only until the shard
// is opened anew.
func TestBucketThatFails(t *testing.T) {
	away := errors.New("the bucket is away")
	var rng *rand.Rand
	enough := testrun.Rounds(6, 60) // queries that met it
	some := func(f func(io.ReadCloser) (io.ReadCloser, error)) func(context.Context, io.ReadCloser) (io.ReadCloser, error) {
		return func(_ context.Context, r io.ReadCloser) (io.ReadCloser, error) {
			if rng.IntN(5) > 0 {
				return r, nil
			}
			return f(r)
		}
	}
	for name, c := range map[string]struct {
		how     func(context.Context, io.ReadCloser) (io.ReadCloser, error)
		want    error
		percent int64 // of the shard that the disk has room for
	}{
		"fails":     {some(func(r io.ReadCloser) (io.ReadCloser, error) { r.Close(); return nil, away }), away, 100},
		"truncates": {some(func(r io.ReadCloser) (io.ReadCloser, error) { return brokenReader{r, half}, nil }), io.ErrUnexpectedEOF, 100},
		"empty":     {some(func(r io.ReadCloser) (io.ReadCloser, error) { return brokenReader{r, none}, nil }), io.ErrUnexpectedEOF, 10},
		"flips":     {some(func(r io.ReadCloser) (io.ReadCloser, error) { return brokenReader{r, flip}, nil }), format.ErrCorrupt, 100},
		"no room":   {some(func(r io.ReadCloser) (io.ReadCloser, error) { return brokenReader{r, flip}, nil }), format.ErrCorrupt, 10},
	} {
		p := newPair(t, c.percent)
		p.slots = make(chan struct{}, 1) // one read at a time: rng is of one goroutine
		rng = rand.New(rand.NewPCG(8, 8))
		failed := 0
		for i, q := range indextest.Queries(p.corpus, 6, 20*enough) {
			ready := prepare(t, p.corpus, q.Text)
			if ready == nil {
				continue
			}
			if failed == enough {
				break
			}
			want, err := answers(t.Context(), p.local, ready, p.corpus)
			must(t, err)
			p.source.breakBy(c.how)
			got, err := answers(t.Context(), p.ranged, ready, p.corpus)
			p.source.breakBy(nil)
			switch {
			case err == nil && !got.is(want):
				t.Errorf("%s, query %q:\n got %+v\nwant %+v", name, q.Text, got, want)
			case err != nil && !errors.Is(err, c.want):
				t.Errorf("%s, query %q: %v", name, q.Text, err)
			case err != nil:
				failed++
			}
			p.settle()
			checkRoom(t, p.world)
			if err != nil || i%5 == 0 { // as the store does it: dropped, and opened anew
				must(t, p.ranged.Close())
				p.ranged = p.Open(Object{Name: "whole", Key: "whole", Size: p.size})
				if got, err = answers(t.Context(), p.ranged, ready, p.corpus); err != nil || !got.is(want) {
					t.Errorf("%s, query %q, when the bucket is well: %v", name, q.Text, err)
				}
				must(t, p.ranged.Close())
				p.ranged = p.Open(Object{Name: "whole", Key: "whole", Size: p.size})
			}
		}
		if failed < enough {
			t.Errorf("%s: only %d queries met it", name, failed)
		}
	}
}

func half(r io.Reader, p []byte) (int, error) {
	n, _ := r.Read(p[:(len(p)+1)/2])
	return n, io.EOF
}

func none(io.Reader, []byte) (int, error) { return 0, io.EOF }

func flip(r io.Reader, p []byte) (int, error) {
	n, err := r.Read(p)
	if n > 0 {
		p[n/2] ^= 4
	}
	return n, err
}

// TestDeadlineOfTheQuery: a bucket that hangs delays a query until the query's time ends. A query
// that waits for the same bytes ends at its own deadline. When no query waits any more, the read
// ends too.
func TestDeadlineOfTheQuery(t *testing.T) {
	p := newPair(t, 100)
	gone := make(chan struct{})
	giveUp := sync.OnceFunc(func() { close(gone) })
	p.source.breakBy(func(ctx context.Context, r io.ReadCloser) (io.ReadCloser, error) {
		r.Close()
		<-ctx.Done()
		giveUp()
		return nil, ctx.Err()
	})
	patient, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- p.ranged.Check(patient) }()
	testrun.Until(t, "all its reads have begun", func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		return len(p.ranged.object.flights) > 0 && p.source.reads.Load() > 0
	})
	before := p.source.reads.Load()
	short, end := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer end()
	if err := p.ranged.Check(short); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the impatient one: %v", err)
	}
	select {
	case err := <-done:
		t.Fatalf("the patient one did not wait: %v", err)
	case <-gone:
		t.Fatal("the read was given up although one waits for it")
	default:
	}
	if n := p.source.reads.Load(); n != before {
		t.Errorf("%d more reads of the same bytes", n-before)
	}
	p.source.breakBy(nil)
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("the patient one: %v", err)
	}
	<-gone
	if err := p.ranged.Check(t.Context()); err != nil {
		t.Errorf("when the bucket is well: %v", err)
	}
}

// TestProcessorIsFreeWhileTheBucketIsRead: a search that waits for the bucket, or for
// room, has no processor meanwhile, and has one again when it goes on.
func TestProcessorIsFreeWhileTheBucketIsRead(t *testing.T) {
	p := newPair(t, 100)
	slots := processor.NewSlots(1)
	free := func(within time.Duration) bool {
		ctx, cancel := context.WithTimeout(t.Context(), within)
		defer cancel()
		_, slot, err := slots.Take(ctx)
		if err == nil {
			slot.Release()
		}
		return err == nil
	}
	reads, goOn := make(chan struct{}), make(chan struct{})
	p.source.breakBy(func(ctx context.Context, r io.ReadCloser) (io.ReadCloser, error) {
		select {
		case reads <- struct{}{}:
			<-goOn
		case <-ctx.Done():
		}
		return r, ctx.Err()
	})
	ctx, slot, err := slots.Take(t.Context())
	must(t, err)
	done := make(chan error, 1)
	go func() { done <- p.ranged.Check(ctx) }()
	met := 0
	for running := true; running; {
		select {
		case <-reads:
			met++
			if !t.Failed() && !free(time.Minute) { // the search may be on its way to wait
				t.Error("the processor is not free while the bucket is read")
			}
			goOn <- struct{}{}
		case err := <-done:
			must(t, err)
			running = false
		}
	}
	if met == 0 {
		t.Error("nothing was read")
	}
	if free(time.Millisecond) {
		t.Error("the search went on without a processor")
	}
	slot.Release()
	if !free(time.Minute) {
		t.Error("the processor was not given back")
	}
}
