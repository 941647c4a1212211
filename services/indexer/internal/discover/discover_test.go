package discover

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/trawl-search/trawl/internal/codehost"
	catalogv1 "github.com/trawl-search/trawl/proto/trawl/catalog/v1"
	ingestv1 "github.com/trawl-search/trawl/proto/trawl/ingest/v1"
)

// TestReposComeAndLeave: the repos of a source become desired and are enqueued once. A repo that
// leaves is deleted after the grace period, unless it comes back.
func TestReposComeAndLeave(t *testing.T) {
	inWorld(t, func(w *world) {
		w.listed["x"] = []codehost.Repo{repo(1, "acme/a"), repo(2, "acme/b"), repo(3, "acme/secret"), {ID: "4", Path: "acme/old", CloneURL: "https://git.example.com/acme/old", Archived: true}}
		s := spec("x")
		s.Include, s.Exclude = []string{"acme/*"}, []string{"**/secret"}
		s.Branches, s.Overrides = []string{"main"}, []*ingestv1.BranchRule{{Match: "acme/b", Branches: []string{"release/*"}}}
		s.Ranks = []*ingestv1.RankRule{{Match: "**/b", Rank: 30}, {Match: "acme/b", Rank: 90}}
		w.apply(s)
		w.want("at first", "acme/a", "acme/b")
		if got := w.take(); !slices.Equal(got, []string{"git.example.com/acme/a:1", "git.example.com/acme/b:1"}) {
			t.Errorf("enqueued %q", got)
		}
		b, err := w.Store.GetDesired(t.Context(), "git.example.com/acme/b")
		if err != nil || !slices.Equal(b.Record.GetBranches(), []string{"release/*"}) || b.Record.GetFacts().GetRank() != 30 {
			t.Errorf("%v, %v", b.Record, err)
		}
		after(time.Hour)
		if got := w.take(); len(got) > 0 {
			t.Errorf("nothing has changed, and %q were enqueued", got)
		}
		w.set(func() { w.listed["x"] = w.listed["x"][:1] })
		after(23 * time.Hour)
		w.want("within the grace time", "acme/a", "acme/b")
		if r := w.report("x"); r.GetRepos() != 1 || r.GetLeaving() != 1 {
			t.Errorf("%v", r)
		}
		w.set(func() { w.listed["x"] = []codehost.Repo{repo(1, "acme/a"), repo(2, "acme/b")} })
		after(24 * time.Hour)
		w.want("it came back", "acme/a", "acme/b")
		w.set(func() { w.listed["x"] = nil })
		after(time.Hour)
		w.set(func() { w.listed["x"] = []codehost.Repo{repo(1, "acme/a"), repo(2, "acme/b")} })
		after(time.Hour)
		if got := w.take(); len(got) > 0 {
			t.Errorf("all left and came back as they were, and %q were enqueued", got)
		}
		if r := w.report("x"); r.GetRepos() != 2 || r.GetLeaving() != 0 {
			t.Errorf("they came back: %v", r)
		}
		w.set(func() { w.listed["x"] = nil })
		after(25 * time.Hour)
		w.want("after the grace time")
	})
}

// TestAbsencesDoNotAddUp: a repo that is back within the grace period counts as never gone. When it leaves
// again, all of the grace period begins anew.
func TestAbsencesDoNotAddUp(t *testing.T) {
	inWorld(t, func(w *world) {
		both := []codehost.Repo{repo(1, "acme/a"), repo(2, "acme/b")}
		w.listed["x"] = both
		w.apply(spec("x"))
		step := func(what string, listed []codehost.Repo, d time.Duration, left bool) {
			t.Helper()
			w.set(func() { w.listed["x"] = listed })
			after(d)
			w.want(what, "acme/a", "acme/b")
			b, err := w.Store.GetDesired(t.Context(), "git.example.com/acme/b")
			if err != nil || (b.Record.GetLeftAt() != nil) != left {
				t.Errorf("%s: %v, %v", what, b.Record, err)
			}
		}
		for range 3 {
			step("it left", both[:1], 23*time.Hour, true)
			step("it is back", both, time.Hour, false)
			step("it left again", both[:1], 2*time.Hour, true)
			step("it is back again", both, 25*time.Hour, false)
		}
		step("it left for good", both[:1], 23*time.Hour, true)
		after(2 * time.Hour)
		w.want("after the grace time", "acme/a")
	})
}

// TestReposWithoutIDs: where the host gives its repos no ids, a repo that left has no new name, and stays for the
// grace period although others of the host are published.
func TestReposWithoutIDs(t *testing.T) {
	inWorld(t, func(w *world) {
		a, b := repo(1, "acme/a"), repo(2, "acme/b")
		a.ID, b.ID = "", ""
		w.listed["x"] = []codehost.Repo{a, b}
		w.apply(spec("x"))
		w.publish("git.example.com/acme/b", "c1")
		w.set(func() { w.listed["x"] = []codehost.Repo{b} })
		after(23 * time.Hour)
		w.want("within the grace time", "acme/a", "acme/b")
	})
}

// TestChangesAreRequests: whatever a source says anew about a repo is requested once.
func TestChangesAreRequests(t *testing.T) {
	inWorld(t, func(w *world) {
		a, s := repo(1, "acme/a"), spec("x")
		for what, change := range map[string]func(){
			"another id":   func() { a.ID += "1" },
			"another URL":  func() { a.CloneURL = "https://git.example.com/acme/a" },
			"its branches": func() { s.Branches = []string{"main"} },
			"that all see": func() { a.Public = !a.Public },
			"another rank": func() { s.Ranks = []*ingestv1.RankRule{{Match: "**", Rank: 7}} },
			"nothing":      func() {},
		} {
			w.set(func() { w.listed["x"] = []codehost.Repo{a} })
			w.apply(s)
			after(time.Hour)
			w.take()
			change()
			w.set(func() { w.listed["x"] = []codehost.Repo{a} })
			w.apply(s)
			after(time.Hour)
			d, err := w.Store.GetDesired(t.Context(), "git.example.com/acme/a")
			if err != nil || d.Record.GetHostId() != a.ID || d.Record.GetUrl() != a.CloneURL || !slices.Equal(d.Record.GetBranches(), s.Branches) {
				t.Errorf("%s: %v, %v", what, d.Record, err)
			}
			want := 1
			if what == "nothing" {
				want = 0
			}
			if got := w.take(); len(got) != want {
				t.Errorf("%s: %q were enqueued", what, got)
			}
		}
	})
}

// TestFiveThousandRepos: each is enqueued once.
func TestFiveThousandRepos(t *testing.T) {
	inWorld(t, func(w *world) {
		for i := range 5000 {
			w.listed["x"] = append(w.listed["x"], repo(i+1, fmt.Sprintf("acme/r%d", i)))
		}
		w.apply(spec("x"))
		after(time.Hour)
		if jobs := w.take(); len(jobs) != 5000 || len(w.names()) != 5000 || w.report("x").GetRepos() != 5000 {
			t.Errorf("%d jobs, %d desired, %v", len(jobs), len(w.names()), w.report("x"))
		}
	})
}

// TestLooksReadEachRecordOnce: a look at 2,000 repos takes few requests to etcd.
func TestLooksReadEachRecordOnce(t *testing.T) {
	inWorld(t, func(w *world) {
		for i := range 2000 {
			w.listed["x"] = append(w.listed["x"], repo(i+1, fmt.Sprintf("acme/r%d", i)))
		}
		w.apply(spec("x"))
		looks := len(w.looks["x"])
		w.set(func() { w.asked = 0 })
		after(12 * time.Minute)
		w.mu.Lock()
		defer w.mu.Unlock()
		// The sources are read every five seconds; a look reads 4 pages of records and 20
		// times 100 roots, and writes after each how far it came.
		reads := int(12*time.Minute/readEvery) + 1
		if n, asked := len(w.looks["x"])-looks, w.asked/2; n != 1 || asked > reads+4+2*20+5 {
			t.Errorf("%d looks sent etcd %d requests besides those for the sources", n, asked-reads)
		}
	})
}

// TestOthersReposStay: repos that were put by hand, or belong to another source, stay as they are.
// When a source goes, another one takes over its repos.
func TestOthersReposStay(t *testing.T) {
	inWorld(t, func(w *world) {
		if _, _, err := w.Store.PutDesired(t.Context(), &catalogv1.Desired{Name: "git.example.com/acme/hand", Url: "https://git.example.com/acme/hand"}); err != nil {
			t.Fatal(err)
		}
		w.listed["x"] = []codehost.Repo{repo(1, "acme/hand"), repo(2, "acme/a")}
		w.apply(spec("x"))
		w.listed["y"] = []codehost.Repo{repo(2, "acme/a")}
		w.apply(spec("x"), spec("y"))
		if x, y := w.report("x"), w.report("y"); x.GetForeign() != 1 || x.GetRepos() != 1 || y.GetForeign() != 1 {
			t.Errorf("%v, %v", x, y)
		}
		w.apply(spec("y"))
		after(time.Hour)
		w.want("taken over", "acme/a", "acme/hand")
		if a, err := w.Store.GetDesired(t.Context(), "git.example.com/acme/a"); err != nil || a.Record.GetSource() != "y" {
			t.Errorf("%v, %v", a.Record, err)
		}
		w.apply()
		after(25 * time.Hour)
		w.want("no source is left", "acme/hand")
		for s, err := range w.Store.ListSources(t.Context()) {
			t.Errorf("there is still %v, %v", s.Record, err)
		}
	})
}

// TestHostsThatFail: a host that is down causes no deletion, is asked less and less often, and is
// reported. Others go on.
func TestHostsThatFail(t *testing.T) {
	inWorld(t, func(w *world) {
		w.listed["bad"], w.listed["good"] = []codehost.Repo{repo(1, "acme/a")}, []codehost.Repo{repo(2, "acme/b")}
		w.apply(spec("bad"), spec("good"))
		w.set(func() { w.failing["bad"], w.looks = errors.New("HTTP 500"), map[string][]time.Time{} })
		after(48 * time.Hour)
		w.want("long after the grace time", "acme/a", "acme/b")
		r := w.report("bad")
		if !strings.Contains(r.GetReason(), "HTTP 500") || r.GetFailures() < 40 || !r.GetNextAt().AsTime().After(time.Now()) || r.GetRepos() != 1 {
			t.Errorf("%v", r)
		}
		if bad, good := len(w.looks["bad"]), len(w.looks["good"]); bad > 70 || good < 200 {
			t.Errorf("%d looks at the bad one, %d at the good one", bad, good)
		}
		if ok, failing := w.states(); ok != 1 || failing != 1 {
			t.Errorf("the metrics report %v sources as ok and %v as failing", ok, failing)
		}
		w.set(func() { w.failing["bad"] = nil })
		after(2 * time.Hour)
		if r := w.report("bad"); r.GetFailures() != 0 || r.GetReason() != "" {
			t.Errorf("well again: %v", r)
		}
		w.apply()
		after(25 * time.Hour)
		if ok, failing := w.states(); ok != 0 || failing != 0 {
			t.Errorf("all are gone, and the metrics report %v and %v", ok, failing)
		}
	})
}

// TestOnlyItsReposArePolled: while a source cannot be listed, the repos that it had last are polled, and no other: not one that left, and
// not one that was put by hand.
func TestOnlyItsReposArePolled(t *testing.T) {
	inWorld(t, func(w *world) {
		if _, _, err := w.Store.PutDesired(t.Context(), &catalogv1.Desired{Name: "git.example.com/acme/hand", Url: "https://git.example.com/acme/hand.git"}); err != nil {
			t.Fatal(err)
		}
		both := []codehost.Repo{repo(1, "acme/a"), repo(2, "acme/b")}
		w.listed["x"] = both
		w.apply(spec("x"))
		for _, name := range []string{"a", "b", "hand"} {
			w.publish("git.example.com/acme/"+name, "c1")
		}
		w.set(func() { w.listed["x"] = both[:1] })
		after(time.Hour)
		w.set(func() { w.failing["x"], w.polled = errors.New("HTTP 500"), nil })
		after(3 * time.Hour)
		w.want("all are still wanted", "acme/a", "acme/b", "acme/hand")
		if len(w.polled) == 0 {
			t.Error("nothing was polled")
		}
		for _, url := range w.polled {
			if url != "https://git.example.com/acme/a.git" {
				t.Errorf("%s was polled", url)
			}
		}
	})
}

// TestLimitsAreKept: a host that asks to be left alone gets no requests, not even from the next
// leader. A changed source is looked at immediately.
func TestLimitsAreKept(t *testing.T) {
	inWorld(t, func(w *world) {
		w.set(func() { w.failing["x"] = &codehost.Error{Reason: "limited", RetryAfter: 50 * time.Minute} })
		w.apply(spec("x"))
		s, err := w.Store.GetSource(t.Context(), "x")
		if err != nil {
			t.Fatal(err)
		}
		next := &look{Discoverer: w.Discoverer, spec: s.Record.GetSpec(), source: s}
		if wait := next.first(t.Context()); wait < 45*time.Minute {
			t.Errorf("the next leader waits %v", wait)
		}
		after(45 * time.Minute)
		if n := len(w.looks["x"]); n != 1 {
			t.Errorf("%d looks, want 1", n)
		}
		changed := spec("x")
		changed.Forks = true
		w.apply(changed)
		if n := len(w.looks["x"]); n != 2 {
			t.Errorf("%d looks after a change, want 2", n)
		}
	})
}

// TestOnlyWhatMovedIsEnqueued: polling enqueues only repos whose branches moved, and none of them
// twice.
func TestOnlyWhatMovedIsEnqueued(t *testing.T) {
	inWorld(t, func(w *world) {
		w.listed["x"] = []codehost.Repo{repo(1, "acme/a"), repo(2, "acme/b")}
		w.heads = map[string]string{"https://git.example.com/acme/a.git": "c1", "https://git.example.com/acme/b.git": "c1"}
		w.apply(spec("x"))
		w.publish("git.example.com/acme/a", "c1")
		w.publish("git.example.com/acme/b", "c1")
		w.take()
		after(time.Hour)
		if got := w.take(); len(got) > 0 || len(w.polled) < 8 {
			t.Errorf("nothing moved, and %q were enqueued after %d questions", got, len(w.polled))
		}
		w.set(func() { w.heads["https://git.example.com/acme/b.git"] = "c2" })
		after(time.Hour)
		if got := w.take(); !slices.Equal(got, []string{"git.example.com/acme/b:2"}) {
			t.Errorf("b moved, and %q were enqueued", got)
		}
		b, err := w.Store.RepoStatus(w.t.Context(), "git.example.com/acme/b")
		if f := b.GetFreshness(); err != nil || f.GetSeenCommit() != "c2" || f.GetIndexedCommit() != "c1" || f.GetSeenBy() != ingestv1.SeenBy_SEEN_BY_POLL || f.GetBehindSince() == nil {
			t.Errorf("b moved, and the status shows %v, %v", f, err)
		}
	})
}

// TestDeadHostIsNotPolled: polling gives up on a dead host before its last repository.
func TestDeadHostIsNotPolled(t *testing.T) {
	inWorld(t, func(w *world) {
		for i := range 100 {
			w.listed["x"] = append(w.listed["x"], repo(i+1, fmt.Sprintf("acme/r%02d", i)))
		}
		w.apply(spec("x"))
		for _, name := range w.names() {
			w.publish(name, "c1")
		}
		after(12 * time.Minute)
		if n := len(w.polled); n < maxUnreachable || n > 4*maxUnreachable {
			t.Errorf("%d repositories were asked", n)
		}
		if r := w.report("x"); !strings.Contains(r.GetReason(), "git cannot reach the host") {
			t.Errorf("%v", r)
		}
	})
}

// TestRefusedURLs: a host cannot get around the policy.
func TestRefusedURLs(t *testing.T) {
	inWorld(t, func(w *world) {
		for i, url := range []string{
			"https://169.254.169.254/x", "file:///etc", "ext::sh -c x", "https://u:p@git.example.com/x", "",
			"https://github.com/acme/x", "https://git.example.com:8443/acme/x", "ssh://git@git.example.com/acme/x",
		} {
			w.listed["x"] = append(w.listed["x"], codehost.Repo{ID: fmt.Sprint(i), Path: "acme/x", CloneURL: url})
		}
		w.apply(spec("x"))
		w.want("all are refused")
		if r := w.report("x"); r.GetRefused() != 8 {
			t.Errorf("%v", r)
		}
	})
}

// TestClaimsOfAnotherHostsNames: a host lists the repos of another host, whose source comes later.
// They are not fetched, and their names stay free for that source.
func TestClaimsOfAnotherHostsNames(t *testing.T) {
	inWorld(t, func(w *world) {
		w.listed["evil"] = []codehost.Repo{repo(1, "acme/a"), {ID: "2", Path: "acme/own", CloneURL: "https://evil.example.org/acme/own"}}
		evil := spec("evil")
		evil.Url = "https://evil.example.org"
		w.apply(evil)
		if got := w.names(); !slices.Equal(got, []string{"evil.example.org/acme/own"}) {
			t.Errorf("%q", got)
		}
		w.listed["good"] = []codehost.Repo{repo(1, "acme/a")}
		w.apply(evil, spec("good"))
		if a, err := w.Store.GetDesired(t.Context(), "git.example.com/acme/a"); err != nil || a.Record.GetSource() != "good" {
			t.Errorf("%v, %v", a.Record, err)
		}
		after(time.Hour)
		if slices.Contains(w.polled, "https://git.example.com/acme/own") || w.report("evil").GetRefused() != 1 || w.report("good").GetForeign() != 0 {
			t.Errorf("%v, %v", w.report("evil"), w.report("good"))
		}
		evil.CloneHosts = []string{"git.example.com"}
		w.apply(evil, spec("good"))
		if w.report("evil").GetRefused() != 0 || w.report("evil").GetForeign() != 1 {
			t.Errorf("a host that the source names: %v", w.report("evil"))
		}
	})
}

// TestTakenMeanwhile: a repo that somebody puts after the listing belongs to them.
func TestTakenMeanwhile(t *testing.T) {
	inWorld(t, func(w *world) {
		hand := &catalogv1.Desired{Name: "git.example.com/acme/a", Url: "https://git.example.com/acme/a", Branches: []string{"hand"}}
		if _, _, err := w.Store.PutDesired(t.Context(), hand); err != nil {
			t.Fatal(err)
		}
		l := &look{Discoverer: w.Discoverer, spec: spec("x")}
		err := l.put(t.Context(), &catalogv1.Desired{Name: hand.Name, Url: hand.Url, Source: "x"})
		got, read := w.Store.GetDesired(t.Context(), hand.Name)
		if !errors.Is(err, errTaken) || read != nil || got.Record.GetSource() != "" || !slices.Equal(got.Record.GetBranches(), hand.Branches) {
			t.Errorf("%v: %v, %v", err, got.Record, read)
		}
	})
}

// TestLeavingIsNoRequest: nothing is indexed because a repo leaves.
func TestLeavingIsNoRequest(t *testing.T) {
	inWorld(t, func(w *world) {
		w.listed["x"] = []codehost.Repo{repo(1, "acme/a")}
		w.apply(spec("x"))
		w.set(func() { w.listed["x"] = nil })
		after(time.Hour)
		a, err := w.Store.GetDesired(t.Context(), "git.example.com/acme/a")
		if err != nil || a.Record.GetEpoch() != 1 || a.Record.GetLeftAt().AsTime().After(time.Now()) || a.Record.GetLeftAt() == (*timestamppb.Timestamp)(nil) {
			t.Errorf("%v, %v", a.Record, err)
		}
	})
}

// TestFileOfSources: the file defines the sources, whatever else was applied. An invalid or missing
// file changes nothing and is reported.
func TestFileOfSources(t *testing.T) {
	inWorldOf(t, filepath.Join(t.TempDir(), "sources.yaml"), func(w *world) {
		refused := func() float64 {
			m := &dto.Metric{}
			if err := w.Metrics.refused.Write(m); err != nil {
				t.Fatal(err)
			}
			return m.GetGauge().GetValue()
		}
		step := func(what, text string, wrong float64, want ...string) {
			t.Helper()
			if err := os.WriteFile(w.File, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			after(3 * readEvery)
			got := []string{}
			for s, err := range w.Store.ListSources(t.Context()) {
				if err != nil {
					t.Fatal(err)
				}
				if !s.Record.GetRemoved() {
					got = append(got, s.Record.GetSpec().GetName()+"/"+s.Record.GetSpec().GetOwner())
				}
			}
			if !slices.Equal(got, want) || refused() != wrong {
				t.Errorf("%s: %v, refused %v; want %v, %v", what, got, refused(), want, wrong)
			}
		}
		const a, b = "sources:\n- {name: a, kind: gitea, url: 'https://git.example.com', owner: x}\n", "- {name: b, kind: gitea, url: 'https://git.example.com', owner: y, grace: 1h}\n"
		w.listed["a"], w.listed["b"] = []codehost.Repo{repo(1, "x/r")}, []codehost.Repo{repo(2, "y/r")}
		step("at first", a+b, 0, "a/x", "b/y")
		w.want("of both", "x/r", "y/r")
		w.apply(spec("c")) // by hand
		step("something else was applied", a+b, 0, "a/x", "b/y")
		step("no YAML", "sources: [", 1, "a/x", "b/y")
		step("a host that is not allowed", a+"- {name: b, kind: gitea, url: 'http://git.example.com', owner: y}\n", 1, "a/x", "b/y")
		if err := os.Remove(w.File); err != nil {
			t.Fatal(err)
		}
		after(3 * readEvery)
		if refused() != 1 || len(w.names()) != 2 {
			t.Errorf("the file is gone: refused %v, %v", refused(), w.names())
		}
		step("a change and a removal", strings.Replace(a, "owner: x", "owner: z", 1), 0, "a/z")
		after(80 * time.Minute)
		w.want("after the grace time", "x/r")
	})
}

// TestMatchingEndsWithItsContext: a host chooses how many repos it lists. Matching them ends with the discoverer, and
// removes no repo.
func TestMatchingEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	l := &look{Discoverer: &Discoverer{}, spec: spec("a"), report: &ingestv1.SourceReport{}}
	if kept, err := l.reconcile(ctx, []codehost.Repo{repo(1, "acme/a")}); kept != nil || !errors.Is(err, context.Canceled) {
		t.Errorf("%v, %v", kept, err)
	}
}
