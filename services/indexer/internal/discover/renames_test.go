package discover

import (
	"fmt"
	"testing"
	"time"

	"github.com/trawl-search/trawl/internal/codehost"
)

// TestRenames: the old name goes as soon as the new one can be searched.
func TestRenames(t *testing.T) {
	inWorld(t, func(w *world) {
		w.listed["x"] = []codehost.Repo{repo(1, "acme/old")}
		w.apply(spec("x"))
		w.publish("git.example.com/acme/old", "c1")
		w.set(func() { w.listed["x"] = []codehost.Repo{repo(1, "acme/new")} })
		after(time.Hour)
		w.want("before the new one is published", "acme/new", "acme/old")
		w.publish("git.example.com/acme/new", "c1")
		after(time.Hour)
		w.want("afterwards", "acme/new")
	})
}

// TestRenamedAgainAndAgain: of a repo that gets a hundred names, at times before the name before it is published, at times only in
// the case of its letters, the last one remains once it can be searched. Until then a published one stays.
func TestRenamedAgainAndAgain(t *testing.T) {
	inWorld(t, func(w *world) {
		published := 0
		for i := range 100 {
			path := []string{"acme/name%d", "acme/Name%d", "acme/NAME%d"}[i%3]
			name := fmt.Sprintf(path, i/3)
			w.set(func() { w.listed["x"] = []codehost.Repo{repo(1, name)} })
			if i == 0 {
				w.apply(spec("x"))
			}
			after(12 * time.Minute)
			if i%7 == 0 {
				w.publish("git.example.com/"+name, "c1")
				after(12 * time.Minute)
				w.want("once it is published", name)
				published = i
			}
			if names := w.names(); len(names) != 1+i-published {
				t.Fatalf("%d renames after the last publication desired are %q", i-published, names)
			}
		}
		w.publish("git.example.com/acme/name33", "c1")
		after(12 * time.Minute)
		w.want("at last", "acme/name33")
	})
}

// TestNamesThatDifferInCase: where the host has two repos whose names differ in the case of their letters only, both are desired, and one
// of them may leave without the other.
func TestNamesThatDifferInCase(t *testing.T) {
	inWorld(t, func(w *world) {
		w.listed["x"] = []codehost.Repo{repo(1, "acme/name"), repo(2, "acme/Name"), repo(3, "Acme/name")}
		w.apply(spec("x"))
		w.want("at first", "Acme/name", "acme/Name", "acme/name")
		if got := w.take(); len(got) != 3 {
			t.Errorf("%q were enqueued", got)
		}
		w.set(func() { w.listed["x"] = w.listed["x"][1:] })
		after(26 * time.Hour)
		w.want("one has left", "Acme/name", "acme/Name")
		if got := w.take(); len(got) > 0 {
			t.Errorf("one has left, and %q were enqueued", got)
		}
	})
}
