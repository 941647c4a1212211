package compact

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/trawl-search/trawl/internal/bucket"
	"github.com/trawl-search/trawl/internal/catalog"
	"github.com/trawl-search/trawl/internal/testrun"
	catalogv1 "github.com/trawl-search/trawl/proto/trawl/catalog/v1"
)

// trial is one compaction of a world. At the n-th operation on the bucket, something happens to its
// indexer.
type trial struct {
	*world
	*Worker

	steps   atomic.Int64
	putting atomic.Pointer[time.Time] // since when a shard is uploaded
}

func newTrial(t *testing.T, n int64, comes func(*trial)) *trial {
	w := newWorld(t)
	for i := range 2 * fanIn {
		w.publish(fmt.Sprintf("example.com/repo-%02d", i), files{"a.go": fmt.Sprint(i)}, false)
	}
	if err := w.scheduler(nil).Pass(t.Context(), time.Now()); err != nil {
		t.Fatal(err)
	}
	x := &trial{world: w, Worker: w.worker(nil)}
	x.Bucket = putting{&x.putting, stepping{w.bucket, func() error {
		if x.steps.Add(1) == n {
			comes(x)
		}
		return nil
	}}}
	return x
}

// putting records when the upload of a shard started.
type putting struct {
	begun *atomic.Pointer[time.Time]
	bucket.Bucket
}

func (b putting) Put(ctx context.Context, key string, r io.Reader, opts bucket.PutOptions) error {
	if strings.HasPrefix(key, "shards/") {
		b.begun.Store(new(time.Now()))
	}
	return b.Bucket.Put(ctx, key, r, opts)
}

// planned is the one compaction, nil when it is done.
func (x *trial) planned() *catalog.Compaction {
	x.t.Helper()
	all, err := x.truth.ListCompactions(context.Background())
	if err != nil || len(all) > 1 {
		x.t.Fatalf("planned are %v, %v", all, err)
	}
	if len(all) == 0 {
		return nil
	}
	return &all[0]
}

// next does the compaction, and returns how long it took.
func (x *trial) next(ctx context.Context) (time.Duration, bool, error) {
	start := time.Now()
	did, err := x.Next(ctx)
	return time.Since(start), did, err
}

// runs counts the compactions with an outcome.
func (x *trial) runs(outcome string) float64 {
	return x.told(x.Metrics.runs.WithLabelValues(becauseSmall, outcome))
}

func (x *trial) told(c prometheus.Counter) float64 {
	x.t.Helper()
	m := &dto.Metric{}
	if err := c.Write(m); err != nil {
		x.t.Fatal(err)
	}
	return m.GetCounter().GetValue()
}

// TestMergesGiveWay: jobs that start at any step of a merge pause it until the last of them has
// ended. It keeps its claim meanwhile, and then resumes. Only a started upload does not pause.
func TestMergesGiveWay(t *testing.T) {
	stride := int64(testrun.Rounds(7, 1))
	rested, uploading := 0, false
	for n := 1 + testrun.Rand(t).Int64N(stride); !uploading; n += stride {
		synctest.Test(t, func(t *testing.T) {
			uploading = givesWay(t, n)
		})
		if t.Failed() {
			t.Fatalf("at step %d", n)
		}
		rested++
	}
	if t.Logf("rested at %d steps", rested); rested < int(4*fanIn/stride) {
		t.Error("that shows nothing")
	}
}

func givesWay(t *testing.T, n int64) (uploading bool) {
	const each = patience / 3
	came := make(chan struct{})
	var first func()
	x := newTrial(t, n, func(x *trial) {
		uploading = x.putting.Load() != nil
		first = x.Jobs.Begin()
		close(came)
	})
	done := make(chan struct{})
	var took time.Duration
	go func() {
		defer close(done)
		var did bool
		var err error
		if took, did, err = x.next(context.Background()); !did || err != nil {
			t.Errorf("%t, %v", did, err)
		}
	}()
	<-came
	synctest.Wait()
	at, before := x.steps.Load(), x.planned()
	time.Sleep(each)
	second := x.Jobs.Begin()
	first()
	time.Sleep(each - time.Second)
	if after := x.planned(); !uploading && (x.steps.Load() != at || after == nil || !after.Claimed || after.Revision != before.Revision) {
		t.Errorf("after %d steps more %v became %v", x.steps.Load()-at, before, after)
	}
	time.Sleep(time.Second)
	second()
	<-done
	want := 2 * each
	if uploading {
		want = 0
	}
	if told := x.told(x.Metrics.paused); took != want || told != want.Seconds() {
		t.Errorf("it took %v, and the metric counts %v seconds, want %v", took, told, want)
	}
	if x.planned() != nil || x.runs(compacted) != 1 {
		t.Errorf("left is %v, compacted %v times", x.planned(), x.runs(compacted))
	}
	x.check("after jobs")
	return uploading
}

// TestMergeRestsAnywhere: a job pauses a merge for as long as the job takes, whenever it starts,
// even when everything is read and only the processor works.
func TestMergeRestsAnywhere(t *testing.T) {
	const job = time.Minute
	// until returns the time to the upload, with a job that starts after a delay.
	until := func(t *testing.T, after time.Duration) (took time.Duration) {
		synctest.Test(t, func(t *testing.T) {
			x := newTrial(t, 0, nil)
			x.Rate = 1 << 10
			start := time.Now()
			if after >= 0 {
				time.AfterFunc(after, func() { time.AfterFunc(job, x.Jobs.Begin()) })
			}
			if _, did, err := x.next(t.Context()); !did || err != nil {
				t.Fatalf("%t, %v", did, err)
			}
			took = x.putting.Load().Sub(start)
		})
		return took
	}
	alone := until(t, -1)
	const parts = 20
	for i := 1; i < parts; i++ { // at 0 the job would already run
		if took := until(t, alone*time.Duration(i)/parts); took < alone+job*9/10 || took > alone+job {
			t.Errorf("a job after %d of %d parts of %v: it took %v", i, parts, alone, took)
		}
	}
}

// TestNeverStarved: endless jobs delay a merge until an hour after its planning, whatever the
// planner's clock shows. They do not delay a pressing merge.
func TestNeverStarved(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*catalogv1.Compaction)
		want   time.Duration
	}{
		"at once":          {func(*catalogv1.Compaction) {}, patience},
		"later":            {func(c *catalogv1.Compaction) { c.PlannedAt = timestamppb.New(time.Now().Add(-patience / 3)) }, patience * 2 / 3},
		"in the future":    {func(c *catalogv1.Compaction) { c.PlannedAt = timestamppb.New(time.Now().Add(9 * patience)) }, patience},
		"after its hour":   {func(c *catalogv1.Compaction) { c.PlannedAt = timestamppb.New(time.Now().Add(-patience)) }, 0},
		"it is pressing":   {func(c *catalogv1.Compaction) { c.Pressing = true }, 0},
		"it tells no time": {func(c *catalogv1.Compaction) { c.PlannedAt = nil }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				x := newTrial(t, 3, func(x *trial) { x.Jobs.Begin() })
				c := *x.planned()
				test.change(c.Record)
				if err := x.truth.ReplaceCompaction(t.Context(), c, c.Record); err != nil {
					t.Fatal(err)
				}
				if took, did, err := x.next(t.Context()); took != test.want || !did || err != nil {
					t.Errorf("it took %v, want %v: %t, %v", took, test.want, did, err)
				}
				if x.planned() != nil {
					t.Error("it is not done")
				}
			})
		})
	}
}

// TestNotBegunBesideJobs: an indexer with a running job leaves a compaction to others for an hour.
func TestNotBegunBesideJobs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newTrial(t, 0, nil)
		defer x.Jobs.Begin()()
		if _, did, err := x.next(t.Context()); did || err != nil || x.planned().Claimed {
			t.Errorf("it did not wait: %v", err)
		}
		time.Sleep(patience)
		if took, did, err := x.next(t.Context()); took != 0 || !did || err != nil {
			t.Errorf("after %v: %t, %v", took, did, err)
		}
	})
}

// TestPauseEnds: a paused merge ends at once with its context, or when its claim is lost, and
// another indexer does it.
func TestPauseEnds(t *testing.T) {
	for outcome, happens := range map[string]func(x *trial, stop func()){
		stopped:   func(_ *trial, stop func()) { stop() },
		lostClaim: func(x *trial, _ func()) { x.etcd.Expire(catalog.DefaultPrefix + "claims/" + x.planned().Name) },
	} {
		t.Run(outcome, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				x := newTrial(t, 3, func(x *trial) { x.Jobs.Begin() })
				time.AfterFunc(time.Minute, func() { happens(x, cancel) })
				took, did, err := x.next(ctx)
				if took != time.Minute || !did || err == nil || x.runs(outcome) != 1 {
					t.Errorf("after %v: %t, %v; %v times %s", took, did, err, x.runs(outcome), outcome)
				}
				if outcome == lostClaim && !errors.Is(err, catalog.ErrLeaseLost) {
					t.Error(err)
				}
				if c := x.planned(); c == nil || c.Claimed {
					t.Errorf("left is %v", c)
				}
				time.Sleep(minRetry)
				if did, err := x.worker(nil).Next(t.Context()); !did || err != nil || x.planned() != nil {
					t.Errorf("another one: %t, %v", did, err)
				}
			})
		})
	}
}
