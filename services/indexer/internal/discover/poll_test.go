package discover

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/trawl-search/trawl/internal/codehost"
	"github.com/trawl-search/trawl/internal/testrun"
	ingestv1 "github.com/trawl-search/trawl/proto/trawl/ingest/v1"
)

// TestLargeSourcesAreListedInTime: polling a source takes five times as long as there is between two looks. Its list is looked at in time
// nevertheless, all of its repos have their turn, and what a webhook brings before that is not requested again.
func TestLargeSourcesAreListedInTime(t *testing.T) {
	inWorld(t, func(w *world) {
		w.PerSecond = 1
		all := make([]codehost.Repo, 300)
		for i := range all {
			all[i] = repo(i+1, fmt.Sprintf("acme/r%03d", i))
			w.heads[all[i].CloneURL] = "c1"
		}
		w.listed["x"] = all
		s := spec("x")
		s.Every = durationpb.New(time.Minute)
		w.apply(s)
		for _, name := range w.names() {
			w.publish(name, "c1")
		}
		w.take()
		after(70 * time.Second) // polling has begun
		w.set(func() {
			w.listed["x"] = append(slices.Clone(all), repo(301, "acme/new"))
			w.heads[all[299].CloneURL] = "c2"
			w.polled = nil
		})
		w.publish("git.example.com/acme/r299", "c2") // after a webhook
		after(150 * time.Second)
		if got := w.take(); !slices.Equal(got, []string{"git.example.com/acme/new:1"}) {
			t.Errorf("a repo is new, and %q were enqueued", got)
		}
		after(200 * time.Second)
		counts := map[string]int{}
		for _, url := range w.polled {
			counts[url]++
		}
		for _, r := range all {
			if n := counts[r.CloneURL]; n != 1 && n != 2 {
				t.Fatalf("%s was polled %d times", r.Path, n)
			}
		}
		if got := w.take(); len(got) > 0 {
			t.Errorf("nothing moved, and %q were enqueued", got)
		}
	})
}

// TestSlowLists: a host whose list takes longer than the time between two looks is left alone for about as long as the list took, with many repos to
// poll and with few.
func TestSlowLists(t *testing.T) {
	for _, n := range []int{1, 2000} {
		inWorld(t, func(w *world) {
			w.PerSecond, w.listing = 1, 20*time.Minute
			for i := range n {
				r := repo(i+1, fmt.Sprintf("acme/r%04d", i))
				w.listed["x"], w.heads[r.CloneURL] = append(w.listed["x"], r), "c1"
			}
			s := spec("x")
			s.Every = durationpb.New(time.Second)
			w.apply(s)
			after(w.listing)
			for _, name := range w.names() {
				w.publish(name, "c1")
			}
			after(6 * time.Hour)
			for i, at := range w.looks["x"][1:] {
				if gap := at.Sub(w.looks["x"][i]) - w.listing; gap < w.listing*7/8 {
					t.Errorf("%d repos: list %d came %v after the one before, which took %v", n, i+2, gap, w.listing)
				}
			}
			if lists, polls := len(w.looks["x"]), len(w.polled); lists < 7 || polls < min(n, 1000) {
				t.Errorf("%d repos: %d lists and %d polls in six hours", n, lists, polls)
			}
		})
	}
}

// TestLeadersChange: leaders come and go at random moments, after they polled one hundred repos at least, and before they polled all. Each repo
// is polled while seven of them lead, whether the time between two looks is long or short.
func TestLeadersChange(t *testing.T) {
	random := testrun.Rand(t)
	for _, every := range []time.Duration{time.Minute, time.Hour} {
		inWorld(t, func(w *world) {
			w.PerSecond = 1
			for i := range 600 {
				r := repo(i+1, fmt.Sprintf("acme/r%03d", i))
				w.listed["x"] = append(w.listed["x"], r)
				w.heads[r.CloneURL] = "c1"
			}
			s := spec("x")
			s.Every = durationpb.New(every)
			w.apply(s)
			for _, name := range w.names() {
				w.publish(name, "c1")
			}
			for round := range 3 {
				w.resign()
				after(2 * every)
				w.set(func() { w.polled = nil })
				for range 7 {
					w.lead()
					after(2*time.Minute + time.Duration(random.Int64N(int64(2*time.Minute))))
					w.resign()
				}
				polled := map[string]bool{}
				for _, url := range w.polled {
					polled[url] = true
				}
				if len(polled) != 600 {
					t.Errorf("a look every %v, round %d: %d of 600 repos were polled", every, round, len(polled))
				}
			}
		})
	}
}

// TestClockOfThePreviousLeader: a new leader keeps to the schedule of the previous one whose clock was a little ahead, and looks at once if
// it was an hour ahead: a changed source would wait for that hour. A repo that was marked by such a clock is deleted an hour late.
func TestClockOfThePreviousLeader(t *testing.T) {
	inWorld(t, func(w *world) {
		w.listed["x"] = []codehost.Repo{repo(1, "acme/a")}
		w.apply(spec("x"))
		s, err := w.Store.GetSource(t.Context(), "x")
		if err != nil {
			t.Fatal(err)
		}
		for ahead, want := range map[time.Duration]time.Duration{-time.Second: 10*time.Minute - time.Second, time.Second: 10*time.Minute + time.Second, time.Hour: 0} {
			looked := time.Now().Add(ahead)
			report := &ingestv1.SourceReport{LookedAt: timestamppb.New(looked), NextAt: timestamppb.New(looked.Add(10 * time.Minute))}
			if err := w.Store.PutSourceReport(t.Context(), s, report); err != nil {
				t.Fatal(err)
			}
			next := &look{Discoverer: w.Discoverer, spec: s.Record.GetSpec(), source: s}
			if wait := next.first(t.Context()); wait != want {
				t.Errorf("by a clock that is %v ahead: the next leader waits %v, want %v", ahead, wait, want)
			}
		}
		w.set(func() { w.listed["x"] = nil })
		a, err := w.Store.GetDesired(t.Context(), "git.example.com/acme/a")
		if err == nil {
			err = w.Store.MarkLeft(t.Context(), a, time.Now().Add(time.Hour))
		}
		if err != nil {
			t.Fatal(err)
		}
		after(24 * time.Hour)
		w.want("after the grace time", "acme/a")
		after(2 * time.Hour)
		w.want("an hour later")
	})
}

// TestRecordThatIsTooLarge: a repo that cannot be stored is refused, and holds up no other.
func TestRecordThatIsTooLarge(t *testing.T) {
	inWorld(t, func(w *world) {
		all := []codehost.Repo{repo(1, "acme/a"), repo(2, "acme/b"), repo(3, "acme/z")}
		w.listed["x"] = all[:1]
		w.apply(spec("x"))
		w.want("first", "acme/a")
		bad := repo(9, "acme/m")
		bad.ID = strings.Repeat("9", 2<<20)
		w.set(func() { w.listed["x"] = []codehost.Repo{all[1], bad, all[2]} })
		after(3 * 24 * time.Hour)
		if r := w.report("x"); r.GetRefused() != 1 || r.GetReason() != "" {
			t.Errorf("the report is %v", r)
		}
		w.want("three days later", "acme/b", "acme/z")
	})
}

// TestUnreachableReposHoldUpNoOthers: repos that alone cannot be reached, as many as stand for a host, do not keep others from being polled.
func TestUnreachableReposHoldUpNoOthers(t *testing.T) {
	inWorld(t, func(w *world) {
		all := make([]codehost.Repo, 300)
		for i := range all {
			all[i] = repo(i+1, fmt.Sprintf("acme/r%05d", i))
			w.heads[all[i].CloneURL] = "c1"
		}
		w.listed["x"] = all
		w.apply(spec("x"))
		for _, name := range w.names() {
			w.publish(name, "c1")
		}
		w.take()
		w.set(func() {
			for _, r := range all[:5] {
				delete(w.heads, r.CloneURL)
			}
			for _, r := range all[150:] {
				w.heads[r.CloneURL] = "c2"
			}
		})
		after(24 * time.Hour)
		if got := w.take(); len(got) != 150 {
			t.Errorf("a day later, %d of 150 repos that moved were requested", len(got))
		}
	})
}

// TestBranchesThatAreLeftOutHaveNotMoved: a branch that an index leaves out is requested again when it names something else, and not before.
func TestBranchesThatAreLeftOutHaveNotMoved(t *testing.T) {
	inWorld(t, func(w *world) {
		w.listed["x"] = []codehost.Repo{repo(1, "acme/a")}
		w.heads = map[string]string{"https://git.example.com/acme/a.git": "c1"}
		w.broken = "c2"
		w.apply(spec("x"))
		w.publish("git.example.com/acme/a", "c1")
		w.take()
		after(time.Hour)
		if got := w.take(); len(got) > 0 {
			t.Errorf("nothing moved, and %q were enqueued", got)
		}
		w.set(func() { w.broken = "c3" })
		after(time.Hour)
		if got := w.take(); !slices.Equal(got, []string{"git.example.com/acme/a:2"}) {
			t.Errorf("the branch moved, and %q were enqueued", got)
		}
	})
}
