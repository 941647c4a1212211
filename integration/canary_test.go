package integration

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/trawl-search/trawl/integration/cluster/faults"
	"github.com/trawl-search/trawl/internal/bucket/buckettest"
	"github.com/trawl-search/trawl/internal/testrun"
)

// watched is a cluster that a canary watches. Callers reach its routers, and roles reach NATS and the bucket, by proxies.
type watched struct {
	*cluster

	t                        *testing.T
	canary                   *process
	nats, bucket, grpc, http *faults.TCP
	// router is where callers get.
	at atomic.Pointer[serving]
}

// watch starts a cluster with tokens, and a canary whose token allows its own repo only.
func watch(t *testing.T) *watched {
	t.Helper()
	w := &watched{t: t, cluster: &cluster{owner: t, dir: t.TempDir()}}
	s3 := buckettest.StartS3(t).Config("code")
	_, endpoint, _ := strings.Cut(s3.URL, "endpoint=http://")
	endpoint, _, _ = strings.Cut(endpoint, "&")
	w.bucket = w.proxy(func() string { return endpoint })
	w.startServers(t)
	nats := strings.TrimPrefix(w.cluster.nats, "nats://")
	w.nats = w.proxy(func() string { return nats })
	w.cluster.nats = "nats://" + w.nats.Addr()

	address, tokens := testrun.Address(t), []string{"--access-mode", "tokens"}
	bucket := []string{"--bucket-url", strings.Replace(s3.URL, endpoint, w.bucket.Addr(), 1), "--bucket-credentials-file", s3.CredentialsFile}
	source := []string{"--source-canary", "http://" + address + "/trawl/canary.git", "--source-schemes", "https"}
	w.extra = map[string][]string{
		"searcher": append(tokens, bucket...), "indexer": append(source, bucket...),
		"router": append(append(tokens, source...), "--drain-delay", "1s"),
	}
	w.startRoles(t, 2)
	w.grpc = w.proxy(func() string { return w.at.Load().GRPC })
	w.http = w.proxy(func() string { return w.at.Load().HTTP })
	w.serve()

	token, repo := t.TempDir()+"/token", address+"/trawl/canary"
	if out, errs, exit := command(t, "tokens", "create", "--etcd-endpoints", w.etcd, "--name", repo, "--allow", repo, "--scopes", "search,ingest", "--out", token); exit != 0 {
		t.Fatalf("exit %d: %s%s", exit, out, errs)
	}
	w.canary = w.start("canary", "canary", "--grpc", "127.0.0.1:0", "--http", address, "--every", "1s",
		"--router-grpc", w.grpc.Addr(), "--router-http", w.http.Addr(), "--router-token-file", token)
	return w
}

// proxy starts a proxy that forwards to what target returns at each connection.
func (w *watched) proxy(target func() string) *faults.TCP {
	w.t.Helper()
	p, err := faults.NewTCP("127.0.0.1:0", func(context.Context) (string, error) { return target(), nil })
	testrun.Must(w.t, err)
	w.t.Cleanup(func() { _ = p.Close() })
	return p
}

// serve has callers reach the newest router.
func (w *watched) serve() {
	w.t.Helper()
	at := w.router.addresses(w.t)
	w.at.Store(&at)
}

// seen is what the canary has counted, of all doors together, or of the door that is furthest behind.
type seen struct{ behind, found, answers, bad, wrong, late float64 }

var sample = regexp.MustCompile(`(?m)^trawl_canary_(\w+)\{(.*)\} (\S+)$`)

// look reads the metrics of the canary.
func (w *watched) look() (s seen) {
	w.t.Helper()
	page, code, err := get(w.t.Context(), "http://"+w.canary.addresses(w.t).HTTP+"/metrics")
	if testrun.Must(w.t, err); code != http.StatusOK {
		w.t.Fatalf("the canary's metrics: status %d: %s", code, page)
	}
	s.found = -1
	for _, m := range sample.FindAllStringSubmatch(page, -1) {
		value, err := strconv.ParseFloat(m[3], 64)
		testrun.Must(w.t, err)
		labels := m[2]
		switch m[1] {
		case "behind_seconds":
			s.behind = max(s.behind, value)
		case "freshness_seconds_count":
			if s.found < 0 || value < s.found {
				s.found = value
			}
		case "answers_total":
			s.answers += value
			switch {
			case strings.Contains(labels, `outcome="wrong"`):
				s.wrong += value
			case !strings.Contains(labels, `outcome="complete"`):
				s.bad += value
			}
		case "deadline_ratio_count":
			s.late += value
		case "deadline_ratio_bucket":
			if strings.Contains(labels, `le="0.75"`) {
				s.late -= value
			}
		}
	}
	return s
}

// finds waits until every door has found that many further pushes.
func (w *watched) finds(pushes float64, when string) {
	w.t.Helper()
	before := w.look().found
	testrun.Until(w.t, fmt.Sprintf("%v pushes are found %s", pushes, when), func() bool { return w.look().found >= before+pushes })
}

// threshold is the number that an alert's expression ends with.
func threshold(t *testing.T, alert string) float64 {
	t.Helper()
	text, err := os.ReadFile("../charts/trawl/alerts/alerts.yaml")
	testrun.Must(t, err)
	_, rule, _ := strings.Cut(string(text), "alert: "+alert+"\n")
	rule, _, _ = strings.Cut(rule, "for: ")
	numbers := regexp.MustCompile(`> ([0-9.]+)\n`).FindAllStringSubmatch(rule, -1)
	if len(numbers) == 0 {
		t.Fatalf("%s has no threshold", alert)
	}
	value, err := strconv.ParseFloat(numbers[len(numbers)-1][1], 64)
	testrun.Must(t, err)
	return value
}

// TestCanaryRings: the expressions of the canary's alerts come true when indexers, searchers, NATS or the bucket are cut
// off, and pushes are found again afterwards. A rolling restart of all roles makes neither come true. In the short form
// a push is late after a tenth of the alert's time, and only NATS and the searchers are cut off.
func TestCanaryRings(t *testing.T) {
	w := watch(t)
	late, share := threshold(t, "TrawlCanaryPushNotFound"), threshold(t, "TrawlCanaryAnswersBad")
	if !testrun.All() {
		late /= 10
	}
	w.finds(2, "at first")
	w.rollingRestart(share)

	signal := func(to ...*process) func(sig os.Signal) {
		return func(sig os.Signal) {
			for _, p := range to {
				testrun.Must(t, p.cmd.Process.Signal(sig))
			}
		}
	}
	cut := func(p *faults.TCP) func(sig os.Signal) {
		return func(sig os.Signal) { p.Set(faults.TCPFault{Cut: sig == syscall.SIGSTOP}) }
	}
	for _, fault := range []struct {
		name  string
		set   func(os.Signal)
		push  bool // the push is late; otherwise answers are bad
		short bool
	}{
		{"the indexer", signal(w.indexer), true, false},
		{"NATS", cut(w.nats), true, true},
		{"the bucket", cut(w.bucket), true, false},
		{"the searchers", signal(w.searchers...), false, true},
	} {
		if !testrun.All() && !fault.short {
			continue
		}
		w.finds(1, "before "+fault.name+" is cut off")
		before := w.look()
		fault.set(syscall.SIGSTOP)
		testrun.Until(t, "the canary rings without "+fault.name, func() bool {
			now := w.look()
			if fault.push {
				return now.behind > late
			}
			return now.bad-before.bad > share*(now.answers-before.answers) && now.answers > before.answers
		})
		fault.set(syscall.SIGCONT)
		w.finds(2, "with "+fault.name+" again")
	}
	if s := w.look(); s.wrong > 0 {
		t.Errorf("%v answers showed what was deleted", s.wrong)
	}
}

// rollingRestart replaces every role as a rolling upgrade does. Pushes are found meanwhile, and at most a share of the
// answers is bad. Those that used up most of their deadline do not count: the machine was slow.
func (w *watched) rollingRestart(share float64) {
	w.t.Helper()
	before := w.look()
	for i := range w.searchers {
		w.searchers[i].stop(w.t)
		w.searchers[i] = w.startSearcher(w.t, i)
		w.ready(w.t, w.searchers[i])
		w.finds(1, "after a searcher's restart")
	}
	w.indexer.stop(w.t)
	w.startIndexer(w.t)
	w.finds(1, "after the indexer's restart")
	old := w.router
	w.startRouter(w.t)
	w.serve()
	old.stop(w.t)
	w.finds(3, "by the new router")
	now := w.look()
	answers, bad := now.answers-before.answers, now.bad-before.bad-(now.late-before.late)
	w.t.Logf("a rolling restart: %v answers, %v of them bad, %v late", answers, now.bad-before.bad, now.late-before.late)
	if bad > share*answers || now.wrong > 0 {
		w.t.Errorf("%v of %v answers are bad, and %v show what was deleted", bad, answers, now.wrong)
	}
}
