package discover

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/trawl-search/trawl/internal/codehost"
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
