package k8s

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/trawl-search/trawl/integration/workload"
	"github.com/trawl-search/trawl/internal/pinned"
	ingestv1 "github.com/trawl-search/trawl/proto/trawl/ingest/v1"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

// upgradeFromBefore upgrades from the chart and the images of the commit before to this one, while
// repositories are pushed to and searched. The indexers come first, which is the wrong order, and
// then all the rest at once. Every answer on the way is complete and current.
func (e *e2e) upgradeFromBefore() {
	main := e.release
	defer func() { e.release = main }()
	e.release = release{namespace: "before", own: map[string]bool{}}
	const servers = "before-servers"
	for _, namespace := range []string{servers, e.namespace} {
		e.kubectl("create", "namespace", namespace)
	}
	e.startServers(servers, false)
	e.secrets(e.namespace, map[string]map[string]string{
		"nats": {"username": "trawl", "password": passwordOf("trawl")}, "s3": {"access-key": "trawl", "secret-key": passwordOf("s3")},
	})
	root, err := pinned.Repository(e.t.Context())
	e.must(err)
	helm := func(action, chart, tag string, more ...string) {
		e.t.Helper()
		e.helm(append([]string{
			action, "trawl", filepath.Join(chart, "charts", "trawl"), "--values=" + e.values, "--timeout=5m", "--set=image.tag=" + tag, "--set=pushPauseSeconds=1",
			"--set=etcd.endpoints={http://etcd." + servers + ":2379}", "--set=nats.url=nats://nats." + servers + ":4222", "--set=nats.existingSecret=nats",
			"--set=bucket.url=s3://trawl?endpoint=http://s3." + servers + ":7070&region=us-east-1", "--set=bucket.existingSecret=s3",
		}, more...)...)
	}
	helm("install", filepath.Join(root, beforeSource), before, "--wait")
	e.router = e.port(e.namespace, "trawl-router", "grpc")
	made := e.kubectl("exec", "--namespace="+e.namespace, "deployment/trawl-router", "--", "/trawl", "tokens", "create", "--name=e2e", "--allow=**", "--scopes=admin")
	e.token = strings.Fields(made)[0]
	e.runs(before)

	w := e.newWorkload(3)
	stop := w.Start(e.t.Context())
	defer stop()
	e.progress(w, 3, "before the upgrade")
	e.kubectl("rollout", "pause", "--namespace="+e.namespace, "deployment/trawl-router")
	helm("upgrade", root, current, "--set=searcher.updateStrategy.type=RollingUpdate,searcher.updateStrategy.rollingUpdate.partition=2")
	eventually(e.t, "a new indexer works, or waits for the searchers", func(ctx context.Context) error {
		list, err := e.pods(ctx, e.namespace)
		for _, p := range list {
			if p.role != "indexer" || !strings.HasSuffix(p.image, ":"+current) {
				continue
			}
			if says := e.says(ctx, e.namespace, p); !p.ready && !strings.Contains(says, "upgrade the searchers") {
				return fmt.Errorf("%s: ready is %t, and it says %q", p.name, p.ready, says)
			}
			return nil
		}
		return fmt.Errorf("no new indexer yet: %w", err)
	})
	e.progress(w, 3, "with a new indexer and old searchers")
	e.kubectl("rollout", "resume", "--namespace="+e.namespace, "deployment/trawl-router")
	helm("upgrade", root, current, "--wait")
	e.settled()
	e.progress(w, 3, "after the upgrade")
	stop()
	e.t.Logf("%d answers, %d pushes", w.Answers.Load(), w.Pushes.Load())
	e.must(w.Check(e.t.Context()))
	e.runs(current)
	e.helm("uninstall", "trawl", "--wait", "--timeout=4m")
	e.kubectl("delete", "namespace", servers, e.namespace, "--wait=false")
}

// newWorkload indexes the repositories of a workload on the release.
func (e *e2e) newWorkload(repos int) *workload.Workload {
	e.t.Helper()
	callers := make(chan *caller, 4) // at least as many as call at once
	for range cap(callers) {
		c := e.newCaller()
		callers <- c
		e.t.Cleanup(c.close)
	}
	w := &workload.Workload{Patience: patience, Call: func(ctx context.Context, f func(context.Context, searchv1.SearchServiceClient, ingestv1.IngestServiceClient) error) error {
		c := <-callers
		defer func() { callers <- c }()
		return c.call(ctx, func(ctx context.Context) error {
			return f(ctx, searchv1.NewSearchServiceClient(c.conn), ingestv1.NewIngestServiceClient(c.conn))
		})
	}}
	for i := range repos {
		path := fmt.Sprintf("/before%d", i)
		r, err := workload.NewRepo(e.t.Context(), i, filepath.Join(e.t.TempDir(), "repo"), "git.git.svc:8080"+path,
			"http://git.git.svc:8080"+path+".git", "http://"+e.git+path+".git")
		e.must(err)
		e.must(w.Index(e.t.Context(), r))
		w.Repos = append(w.Repos, r)
	}
	return w
}

// progress waits for the given number of further pushes and for 20 further answers. None may be wrong.
func (e *e2e) progress(w *workload.Workload, pushed uint64, when string) {
	e.t.Helper()
	start, pushes, answers := time.Now(), w.Pushes.Load()+pushed, w.Answers.Load()+20
	eventually(e.t, "pushes and answers "+when, func(context.Context) error {
		if err := w.Err(); err != nil {
			e.t.Fatalf("%s, after %d answers and %d pushes: %v", when, w.Answers.Load(), w.Pushes.Load(), err)
		}
		if w.Pushes.Load() < pushes || w.Answers.Load() < answers {
			return fmt.Errorf("%d of %d pushes, %d of %d answers", w.Pushes.Load(), pushes, w.Answers.Load(), answers)
		}
		return nil
	})
	e.t.Logf("%s: %d pushes and 20 answers more within %.1f s", when, pushed, time.Since(start).Seconds())
}
