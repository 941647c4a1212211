package discover

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/trawl-search/trawl/internal/codehost"
)

// TestUnselectedReposHaveTheGraceTime: a published repo that its source no longer selects, since the repo was archived or a pattern of the
// source changed, stays for the grace time as one does that its host no longer lists. It has no new name: the one that the host lists is its own.
func TestUnselectedReposHaveTheGraceTime(t *testing.T) {
	inWorld(t, func(w *world) {
		all := []codehost.Repo{repo(1, "acme/a"), repo(2, "acme/b"), repo(3, "acme/c")}
		w.listed["x"] = all
		w.apply(spec("x"))
		for _, name := range w.names() {
			w.publish(name, "c1")
		}
		archived := all[1]
		archived.Archived = true
		w.set(func() { w.listed["x"] = []codehost.Repo{all[0], archived, all[2]} })
		s := spec("x")
		s.Exclude = []string{"acme/c"}
		w.apply(s)
		after(23 * time.Hour)
		w.want("within the grace time", "acme/a", "acme/b", "acme/c")
		after(2 * time.Hour)
		w.want("after the grace time", "acme/a")
	})
}

// TestNewNameOfAnotherRepo: a repo gets the name of one that was deleted. What was published under that name is the other one's: the old
// name goes when the repo itself can be searched under the new one.
func TestNewNameOfAnotherRepo(t *testing.T) {
	inWorld(t, func(w *world) {
		w.listed["x"] = []codehost.Repo{repo(1, "acme/a"), repo(2, "acme/b")}
		w.apply(spec("x"))
		w.publish("git.example.com/acme/a", "a1")
		w.publish("git.example.com/acme/b", "b1")
		w.set(func() { w.listed["x"] = []codehost.Repo{repo(1, "acme/b")} })
		after(time.Hour)
		w.want("before it is published under its new name", "acme/a", "acme/b")
		w.publish("git.example.com/acme/b", "a1")
		after(time.Hour)
		w.want("afterwards", "acme/b")
	})
}

// TestIDsOfAnotherHost: a source gets another host, whose ids are its own. A repo of the old host is not the one that has its id there, and
// stays for the grace time.
func TestIDsOfAnotherHost(t *testing.T) {
	inWorld(t, func(w *world) {
		w.listed["x"] = []codehost.Repo{repo(1, "acme/a")}
		w.apply(spec("x"))
		w.publish("git.example.com/acme/a", "a1")
		const other = "git.example.com:8443/team/b"
		w.set(func() { w.listed["x"] = []codehost.Repo{{ID: "1", Path: "team/b", CloneURL: "https://" + other}} })
		s := spec("x")
		s.Url, s.Owner = "https://git.example.com:8443", "team"
		w.apply(s)
		w.publish(other, "b1")
		after(23 * time.Hour)
		if got := w.names(); len(got) != 2 {
			t.Errorf("within the grace time desired are %q", got)
		}
		after(2 * time.Hour)
		if got := w.names(); !slices.Equal(got, []string{other}) {
			t.Errorf("after the grace time desired are %q", got)
		}
	})
}

// TestCountsOfAFailedLook: a look that fails because of etcd does not report that most repos of the source are leaving. The alert compares
// these with the repos that the source has.
func TestCountsOfAFailedLook(t *testing.T) {
	inWorld(t, func(w *world) {
		for i := range 215 {
			w.listed["x"] = append(w.listed["x"], repo(i+1, fmt.Sprintf("acme/r%03d", i)))
		}
		w.apply(spec("x"))
		w.set(func() { w.listed["x"] = w.listed["x"][:200] })
		after(time.Hour)
		if n := gauge(t, w.Metrics.leaving); n != 0 || w.report("x").GetLeaving() != 15 {
			t.Fatalf("%v sources empty, %v", n, w.report("x"))
		}
		w.set(func() { w.etcd = errors.New("etcd is away") })
		after(time.Hour)
		if n := gauge(t, w.Metrics.leaving); n != 0 {
			t.Errorf("etcd is away, and %v sources empty", n)
		}
		w.set(func() { w.etcd = nil })
	})
}
