package k8s

import (
	"context"
	"fmt"
	"strings"

	"github.com/trawl-search/trawl/internal/pinned"
)

// set upgrades the release with other values, and waits until it has settled.
func (e *e2e) set(values ...string) {
	e.t.Helper()
	root, err := pinned.Repository(e.t.Context())
	e.must(err)
	args := []string{"upgrade", "trawl", root + "/charts/trawl", "--reuse-values", "--wait", "--timeout=5m"}
	for _, v := range values {
		args = append(args, "--set="+v)
	}
	e.helm(args...)
	e.settled()
}

// scale goes from two searchers to four and back. No answer is incomplete.
func (e *e2e) scale() {
	stop := e.asking()
	for _, n := range []int{4, 2} {
		e.set(fmt.Sprintf("searcher.replicas=%d", n))
		eventually(e.t, fmt.Sprintf("there are %d searchers", n), func(ctx context.Context) error {
			list, err := e.pods(ctx, e.namespace)
			if got := count(list, "searcher"); err == nil && got != n {
				err = fmt.Errorf("there are %d", got)
			}
			return err
		})
		e.t.Logf("%d searchers", n)
	}
	stop().nothingMissed(e)
}

func count(list []pod, role string) (n int) {
	for _, p := range list {
		if p.role == role {
			n++
		}
	}
	return n
}

// upgrade goes to the current version. No answer is incomplete, indexing goes on, and the canary notices nothing.
func (e *e2e) upgrade() {
	stop := e.asking()
	e.unnoticed(func() { e.set("image.tag=" + current) })
	stop().nothingMissed(e)
	e.runs(current)
	e.commit(e.repos[0])
	e.indexAndSearch()
}

// rollback goes back to the previous version. No answer is incomplete, indexing goes on, and the canary notices nothing.
func (e *e2e) rollback() {
	stop := e.asking()
	e.unnoticed(func() {
		e.helm("rollback", "trawl", "--wait", "--timeout=5m")
		e.settled()
	})
	stop().nothingMissed(e)
	e.runs(previous)
	e.commit(e.repos[1])
	e.indexAndSearch()
}

// runs checks that all roles have this version, by their images and by the version that they
// report.
func (e *e2e) runs(version string) {
	e.t.Helper()
	list, err := e.pods(e.t.Context(), e.namespace)
	e.must(err)
	for _, p := range list {
		if p.role != "router" && p.role != "searcher" && p.role != "indexer" {
			continue
		}
		says := e.kubectl("exec", "--namespace="+e.namespace, p.name, "--", "/trawl", "version")
		if !strings.HasSuffix(p.image, ":"+version) || !strings.HasPrefix(says, "trawl e2e-"+version+" ") {
			e.t.Errorf("%s has the image %s and says that it is %s", p.name, p.image, says)
		}
	}
}
