package merge_test

import (
	"bytes"
	stdcontext "context"
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/trawl-search/trawl/index/build"
	"github.com/trawl-search/trawl/index/docstore"
	"github.com/trawl-search/trawl/index/indextest"
	"github.com/trawl-search/trawl/index/merge"
	"github.com/trawl-search/trawl/internal/testrun"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func context() stdcontext.Context { return stdcontext.Background() }

// drawn is a random split of a model into inputs.
type drawn struct {
	inputs []merge.Input
	want   []repository // what stays
}

// draw deals the documents of a corpus to inputs, and adds documents and repos that must be omitted
// to some of them.
func draw(t *rapid.T) drawn {
	effort := rapid.SampledFrom([]docstore.Effort{docstore.Fresh, docstore.Compact})
	live := modelOf(indextest.Random(rapid.Uint64Range(0, 1<<20).Draw(t, "corpus")))
	other := modelOf(indextest.Random(rapid.Uint64Range(0, 1<<20).Draw(t, "left out")))
	n := rapid.IntRange(1, 5).Draw(t, "inputs")
	shards := make([][]repository, n)
	takes := make([][]merge.Repo, n)
	for _, r := range live {
		dealt := make([]repository, n)
		for i := range dealt {
			dealt[i].record = recordOf(t, &r.record)
		}
		for _, d := range r.documents {
			i := rapid.IntRange(0, n-1).Draw(t, "of input")
			dealt[i].documents = append(dealt[i].documents, d)
		}
		anywhere := false
		for i := range dealt {
			if len(dealt[i].documents) == 0 && (anywhere || i < n-1) && rapid.Bool().Draw(t, "not there") {
				continue
			}
			anywhere = true
			hidden := hide(t, &dealt[i], &r, other)
			takes[i] = append(takes[i], merge.Repo{Record: r.record, Hidden: hidden, Branches: rename(t, &dealt[i], &r.record)})
			shards[i] = append(shards[i], dealt[i])
		}
	}
	d := drawn{want: live}
	for i := range shards {
		for _, r := range other { // deleted repos
			if !slices.ContainsFunc(live, func(l repository) bool { return l.record.Name == r.record.Name }) && rapid.Bool().Draw(t, "deleted") {
				shards[i] = append(shards[i], r)
			}
		}
		slices.SortFunc(shards[i], func(a, b repository) int { return compare(a.record.Name, b.record.Name) })
		data, _ := shardOf(t, shards[i], build.Options{Effort: effort.Draw(t, "effort")})
		d.inputs = append(d.inputs, merge.Input{File: open(t, "input", data), Repos: takes[i]})
	}
	return d
}

func compare(a, b string) int {
	if a < b {
		return -1
	}
	return 1
}

// recordOf returns an input's record of a repo: with other commits and facts, the branches in
// another order, and one more branch.
func recordOf(t *rapid.T, r *docstore.Repo) docstore.Repo {
	have := docstore.Repo{Name: r.Name, Fork: true, Meta: map[string]string{"old": "yes"}}
	have.Branches = rapid.Permutation(append(slices.Clone(r.Branches), docstore.Branch{Name: "gone"})).Draw(t, "branches")
	for i := range have.Branches {
		have.Branches[i].Commit = "0ld"
	}
	return have
}

// hide adds documents that must be omitted: hidden ones, and some that are only on a branch that
// the repo no longer has.
func hide(t *rapid.T, r, live *repository, other []repository) (hidden []uint32) {
	gone := map[string]bool{}
	for _, o := range other {
		for _, d := range o.documents {
			if !rapid.Bool().Draw(t, "hidden") || slices.ContainsFunc(r.documents, func(have document) bool {
				return have.path == d.path && slices.Equal(have.oid, d.oid)
			}) {
				continue
			}
			if d.branches = []string{"gone"}; rapid.Bool().Draw(t, "on a branch") {
				d.branches = []string{live.record.Branches[0].Name}
				gone[d.path+string(d.oid)] = true
			}
			r.documents = append(r.documents, d)
		}
	}
	r.sort()
	for i, d := range r.documents {
		if gone[d.path+string(d.oid)] {
			hidden = append(hidden, uint32(i))
		}
	}
	return hidden
}

// rename gives the branches of an input other names, possibly each other's, and returns where the
// record's branches are then; nil if it changes nothing.
func rename(t *rapid.T, r *repository, record *docstore.Repo) (places []int) {
	if !rapid.Bool().Draw(t, "renamed") {
		return nil
	}
	for _, b := range record.Branches {
		places = append(places, slices.IndexFunc(r.record.Branches, func(o docstore.Branch) bool { return o.Name == b.Name }))
	}
	var names []string
	for _, b := range r.record.Branches {
		names = append(names, b.Name, "was/"+b.Name)
	}
	names = rapid.Permutation(names).Draw(t, "names")
	called := map[string]string{}
	for i := range r.record.Branches {
		b := &r.record.Branches[i]
		called[b.Name], b.Name = names[i], names[i]
	}
	for i := range r.documents {
		d := &r.documents[i]
		d.branches = slices.Clone(d.branches)
		for j, b := range d.branches {
			d.branches[j] = called[b]
		}
	}
	return places
}

// TestMergedIsBuilt: the merged shard equals, byte for byte, the one built from the documents that
// stay, however little of it is kept in memory.
func TestMergedIsBuilt(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := draw(t)
		effort := rapid.SampledFrom([]docstore.Effort{docstore.Fresh, docstore.Compact}).Draw(t, "effort")
		want, wantResult := shardOf(t, d.want, build.Options{Effort: effort})
		memory := rapid.SampledFrom([]int64{0, 1, 5000}).Draw(t, "memory")
		got, result := merged(t, d.inputs, merge.Options{Effort: effort, Memory: memory})
		checkSame(t, got, want, result, wantResult)
	})
}

// TestMergingInSteps: merging some of the inputs first gives the same shard.
func TestMergingInSteps(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := draw(t)
		want, wantResult := shardOf(t, d.want, build.Options{})
		from := rapid.IntRange(0, len(d.inputs)-1).Draw(t, "from")
		to := rapid.IntRange(from+1, len(d.inputs)).Draw(t, "to")
		first, _ := merged(t, d.inputs[from:to], merge.Options{Effort: docstore.Compact})
		taken := map[string]merge.Repo{}
		for _, in := range d.inputs[from:to] {
			for _, r := range in.Repos {
				taken[r.Record.Name] = merge.Repo{Record: r.Record}
			}
		}
		inputs := append(slices.Delete(slices.Clone(d.inputs), from, to),
			merge.Input{File: open(t, "first", first), Repos: slices.Collect(maps.Values(taken))})
		got, result := merged(t, inputs, merge.Options{})
		checkSame(t, got, want, result, wantResult)
	})
}

// TestGoTree merges shards with several dictionaries, posting lists of many blocks, and ranges of
// n-grams that are merged concurrently: a base of a real tree with deltas that moved contents, and
// the same tree in pieces.
func TestGoTree(t *testing.T) {
	tree, err := goTree()
	if err != nil {
		t.Fatal(err)
	}
	limit := testrun.Rounds(9<<20, 17<<20)
	for i, d := range tree.documents {
		if limit -= len(d.content); limit < 0 {
			tree.documents = tree.documents[:i]
			break
		}
	}
	base, delta := repository{record: tree.record}, repository{record: tree.record}
	var hidden []uint32
	for i, d := range tree.documents {
		base.documents = append(base.documents, d)
		switch {
		case i%31 == 0: // changed
			base.documents[i].content = append([]byte("// old\n"), d.content...)
			base.documents[i].oid = gitID(base.documents[i].content)
			fallthrough
		case i%29 == 0: // the same content again, and a copy that stays
			hidden = append(hidden, uint32(i))
			delta.documents = append(delta.documents, d)
		}
	}
	want, wantResult := shardOf(t, []repository{tree}, build.Options{})
	baseData, _ := shardOf(t, []repository{base}, build.Options{Effort: docstore.Compact})
	deltaData, _ := shardOf(t, []repository{delta}, build.Options{})
	inputs := []merge.Input{
		{File: open(t, "base", baseData), Repos: []merge.Repo{{Record: tree.record, Hidden: hidden}}},
		{File: open(t, "delta", deltaData), Repos: []merge.Repo{{Record: tree.record}}},
	}
	for _, processors := range []int{1, 3} {
		got, result := merged(t, inputs, merge.Options{Processors: processors})
		checkSame(t, got, want, result, wantResult)
	}
	pieces := cut(tree)
	want, wantResult = shardOf(t, pieces, build.Options{})
	inputs = nil
	for _, r := range pieces {
		data, _ := shardOf(t, []repository{r}, build.Options{})
		inputs = append(inputs, merge.Input{File: open(t, r.record.Name, data), Repos: []merge.Repo{{Record: r.record}}})
	}
	got, result := merged(t, inputs, merge.Options{})
	checkSame(t, got, want, result, wantResult)
}

// TestRefused: inputs that do not fit together are the caller's mistake, reported before anything
// is written.
func TestRefused(t *testing.T) {
	shards, takes := baseAndDelta(t)
	a, b := takes[0][0], takes[1][0]
	other := a.Record
	other.Generation++
	absent := a.Record
	absent.Name = "absent"
	for name, takes := range map[string][2][]merge.Repo{
		"hidden beyond the end": {{{Record: a.Record, Hidden: []uint32{4}}}, nil},
		"hidden not ascending":  {{{Record: a.Record, Hidden: []uint32{1, 0}}}, nil},
		"hidden twice":          {{{Record: a.Record, Hidden: []uint32{1, 1}}}, nil},
		"no such repo":          {{{Record: absent}}, nil},
		"two records":           {{{Record: other, Hidden: []uint32{0}}}, {b}},
		"taken twice":           {{a, a}, nil},
		"too few branches":      {{{Record: a.Record, Branches: []int{}}}, nil},
		"a branch beyond":       {{{Record: a.Record, Branches: []int{99}}}, nil},
	} {
		var out bytes.Buffer
		if err := mergeShards(&out, shards, takes); !errors.Is(err, merge.ErrInputs) || out.Len() > 0 {
			t.Errorf("%s: %v after %d bytes, should be ErrInputs", name, err, out.Len())
		}
	}
	shards[1] = shards[0]
	if err := mergeShards(io.Discard, shards, [2][]merge.Repo{{a}, {a}}); !errors.Is(err, merge.ErrInputs) {
		t.Errorf("a document that stays twice: %v", err)
	}
}

// TestStopped: a merge stops when the context ends, with the error of Pace, or with the error of
// the file, wherever it occurs. No goroutine is left.
func TestStopped(t *testing.T) {
	shards, takes := baseAndDelta(t)
	inputs := []merge.Input{{File: open(t, "base", shards[0]), Repos: takes[0]}, {File: open(t, "delta", shards[1]), Repos: takes[1]}}
	enough := errors.New("enough")
	paced, total := 0, 0
	res, err := merge.Shards(context(), io.Discard, inputs, merge.Options{Pace: func(_ stdcontext.Context, bytes int) error {
		paced, total = paced+1, total+bytes
		return nil
	}})
	if err != nil || paced == 0 || total < 5000 {
		t.Fatalf("paced %d times for %d bytes (%v)", paced, total, err)
	}
	for n := range paced {
		for _, cancels := range []bool{false, true} {
			ctx, cancel := stdcontext.WithCancel(context())
			left, want := n, enough
			pace := func(stdcontext.Context, int) error {
				if left--; left >= 0 {
					return nil
				}
				if cancels {
					cancel()
					return nil
				}
				return enough
			}
			if cancels {
				want = stdcontext.Canceled
			}
			if _, err := merge.Shards(ctx, io.Discard, inputs, merge.Options{Pace: pace, Processors: 3}); !errors.Is(err, want) {
				t.Errorf("stopped at %d of %d (%t): %v", n, paced, cancels, err)
			}
			cancel()
		}
	}
	for n := 0; n < int(res.Size); n += 37 {
		if _, err := merge.Shards(context(), &fullDisk{n}, inputs, merge.Options{Processors: 3}); !errors.Is(err, errDisk) {
			t.Errorf("with room for %d bytes: %v", n, err)
		}
	}
}

// TestTemporaryFiles: what is not kept in memory is in the named folder, and no file is left, also
// after errors. Without the folder, the merge fails.
func TestTemporaryFiles(t *testing.T) {
	shards, takes := baseAndDelta(t)
	inputs := []merge.Input{{File: open(t, "base", shards[0]), Repos: takes[0]}, {File: open(t, "delta", shards[1]), Repos: takes[1]}}
	want, _ := merged(t, inputs, merge.Options{})
	dir := t.TempDir()
	got, _ := merged(t, inputs, merge.Options{Memory: 1, TempDir: dir})
	if !bytes.Equal(got, want) {
		t.Error("another shard with temporary files")
	}
	for n := 0; n < len(want); n += 97 {
		if _, err := merge.Shards(context(), &fullDisk{n}, inputs, merge.Options{Memory: 1, TempDir: dir}); !errors.Is(err, errDisk) {
			t.Errorf("with room for %d bytes: %v", n, err)
		}
	}
	if names, err := os.ReadDir(dir); err != nil || len(names) > 0 {
		t.Errorf("left behind: %v (%v)", names, err)
	}
	absent := filepath.Join(dir, "absent")
	if _, err := merge.Shards(context(), io.Discard, inputs, merge.Options{TempDir: absent}); err != nil {
		t.Errorf("a folder was needed: %v", err)
	}
	if _, err := merge.Shards(context(), io.Discard, inputs, merge.Options{Memory: 1, TempDir: absent}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("without a folder: %v", err)
	}
}

var errDisk = errors.New("disk full")

// fullDisk fails after that many bytes.
type fullDisk struct{ left int }

func (d *fullDisk) Write(p []byte) (int, error) {
	if d.left -= len(p); d.left < 0 {
		return 0, errDisk
	}
	return len(p), nil
}
