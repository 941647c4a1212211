package k8s

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/trawl-search/trawl/internal/pinned"
)

// scrapeEvery is the interval at which the metrics of all pods are scraped.
const scrapeEvery = 5 * time.Second

// metricsOf are the scheme and port of the metrics of each role of a secured release.
var metricsOf = map[string][2]string{
	"router": {"https", "7431"}, "searcher": {"https", "7441"}, "indexer": {"https", "7451"}, "canary": {"http", "7461"},
}

// record scrapes the metrics of all pods of a secured release into a folder until stop is called, which returns the
// folder. Pods may come and go meanwhile.
func (e *e2e) record() (stop func() (dir string)) {
	dir := e.t.TempDir()
	ctx, cancel := context.WithCancel(e.t.Context())
	var running sync.WaitGroup
	running.Go(func() {
		for ctx.Err() == nil {
			now := time.Now()
			list, err := e.pods(ctx, e.namespace)
			for _, p := range list {
				if at, ok := metricsOf[p.role]; ok { // ready or not, as Prometheus does
					err = errors.Join(err, e.scrape(ctx, p.name, at, fmt.Sprintf("%s/%d-%s.prom", dir, now.UnixMilli(), p.name)))
				}
			}
			if err != nil && ctx.Err() == nil {
				e.t.Logf("some metrics are not recorded: %v", err)
			}
			select {
			case <-ctx.Done():
			case <-time.After(time.Until(now.Add(scrapeEvery))):
			}
		}
	})
	return func() string {
		cancel()
		running.Wait()
		for role := range metricsOf {
			if pages, err := filepath.Glob(filepath.Join(dir, "*-trawl-"+role+"-*.prom")); err != nil || len(pages) == 0 {
				e.t.Errorf("no metrics of a %s were recorded: %v", role, err)
			}
		}
		return dir
	}
}

// scrape writes the metrics of a pod into a file.
func (e *e2e) scrape(ctx context.Context, pod string, at [2]string, file string) error {
	page, err := e.metrics(ctx, pod, at)
	if err != nil {
		return err
	}
	return os.WriteFile(file, []byte(page), 0o600)
}

func (e *e2e) metrics(ctx context.Context, pod string, at [2]string) (page string, err error) {
	return e.Kubectl(ctx, "get", "--raw", "/api/v1/namespaces/"+e.namespace+"/pods/"+at[0]+":"+pod+":"+at[1]+"/proxy/metrics")
}

// rung says when the expression of an alert first held, and when the alert fired; zero: it never did.
type rung struct{ held, fired time.Time }

// rung evaluates the chart's alerts over the recorded metrics, and returns those whose expressions held.
func (e *e2e) rung(dir string) map[string]rung {
	e.t.Helper()
	root, err := pinned.Repository(e.t.Context())
	e.must(err)
	cmd := exec.CommandContext(e.t.Context(), "go", "run", "./fired", filepath.Join(root, "charts", "trawl", "alerts", "alerts.yaml"), dir)
	cmd.Dir = filepath.Join(root, "tools")
	out, err := cmd.Output()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		e.t.Fatalf("evaluate the alerts: %v: %s", err, exit.Stderr)
	}
	e.must(err)
	all := map[string]rung{}
	for line := range strings.Lines(string(out)) {
		e.t.Log(strings.TrimSpace(line))
		fields := strings.Fields(line) // name, severity, times
		var r rung
		r.held, err = time.Parse(time.RFC3339, fields[2])
		e.must(err)
		if fields[3] != "-" {
			r.fired, err = time.Parse(time.RFC3339, fields[3])
			e.must(err)
		}
		all[fields[0]] = r
	}
	return all
}

// unnoticed does something that the canary must not notice, while metrics are recorded.
func (e *e2e) unnoticed(do func()) {
	e.t.Helper()
	recording := e.record()
	time.Sleep(3 * scrapeEvery)
	do()
	time.Sleep(3 * scrapeEvery)
	for alert, r := range e.rung(recording()) {
		if strings.HasPrefix(alert, "TrawlCanary") {
			e.t.Errorf("the expression of %s came true at %v", alert, r.held)
		}
	}
}

// cut is something that is away for a time, and the canary's alert whose expression comes true meanwhile.
type cut struct {
	name, namespace, object string
	alert                   string
	long                    time.Duration
}

// canaryRings takes away what pushes or answers need, one after the other. Each time the canary notices, and then finds
// pushes again. Without etcd it does too, see outage.
func (e *e2e) canaryRings() {
	// The canary asks for a push every 30 s, which is late after 120 s. Then come two scrapes.
	const bad, late = 80 * time.Second, 170 * time.Second
	for _, c := range []cut{
		{"the searchers", e.namespace, "statefulset/trawl-searcher", answersAlert, bad},
		{"the indexers", e.namespace, "deployment/trawl-indexer", pushAlert, late},
		{"NATS", "servers", "statefulset/nats", pushAlert, late},
		{"the bucket", "servers", "statefulset/s3", pushAlert, late},
	} {
		e.t.Run("without "+c.name, func(t *testing.T) {
			within := *e
			within.t = t
			within.ringsWithout(c)
		})
	}
}

func (e *e2e) ringsWithout(c cut) {
	scale := func(replicas string) {
		e.kubectl("scale", "--namespace="+c.namespace, c.object, "--replicas="+replicas)
	}
	replicas := e.kubectl("get", "--namespace="+c.namespace, c.object, "--output=jsonpath={.spec.replicas}")
	recording := e.record()
	time.Sleep(3 * scrapeEvery)
	scale("0")
	away := time.Now()
	time.Sleep(c.long)
	dir := recording()
	scale(replicas)
	e.settled()
	at := e.rung(dir)[c.alert].held
	e.t.Logf("the expression of %s came true at %v, and %s went at %v", c.alert, at, c.name, away)
	if !at.After(away) {
		e.t.Error("the canary did not notice it")
	}
	e.finds()
}

// finds waits until no door of the canary is behind.
func (e *e2e) finds() {
	e.t.Helper()
	eventually(e.t, "the canary finds its last push", func(ctx context.Context) error {
		list, err := e.pods(ctx, e.namespace)
		at := slices.IndexFunc(list, func(p pod) bool { return p.role == "canary" })
		if err != nil || at < 0 {
			return fmt.Errorf("there is no canary: %w", err)
		}
		page, err := e.metrics(ctx, list[at].name, metricsOf["canary"])
		behind := regexp.MustCompile(`(?m)^trawl_canary_behind_seconds\{.*\} (.*)$`).FindAllStringSubmatch(page, -1)
		if err == nil && len(behind) == 0 {
			err = errors.New("no door was asked")
		}
		for _, door := range behind {
			if door[1] != "0" {
				err = fmt.Errorf("a door is behind: %v", behind)
			}
		}
		return err
	})
}
