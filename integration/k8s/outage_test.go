package k8s

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/trawl-search/trawl/internal/access"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

const (
	// noticed bounds the time until routers refuse what needs etcd: the ten seconds for which they accept tokens
	// without it, and a margin for a slow machine.
	noticed = 15 * time.Second
	// etcdAlert is the alert that etcd is unreachable, answersAlert and pushAlert are the canary's.
	etcdAlert    = "TrawlEtcdUnreachable"
	answersAlert = "TrawlCanaryAnswersBad"
	pushAlert    = "TrawlCanaryPushNotFound"
)

// outages takes etcd away, without and with a grace period for the tokens of searches.
func (e *e2e) outages() {
	e.outageOf("without grace", 0)
	e.set("access.outageGraceSeconds=600")
	e.outageOf("with grace", 10*time.Minute)
}

func (e *e2e) outageOf(name string, grace time.Duration) {
	e.t.Run(name, func(t *testing.T) {
		within := *e
		within.t = t
		within.outage(grace)
		within.settled()
	})
}

// asked is the outcome of one call that is not repeated.
type asked struct {
	at, ended    time.Time
	linearizable bool
	code         codes.Code
	complete     bool
	// asOf: the answer names the time at which the token was last known to be valid.
	asOf bool
	err  error
}

// outage takes etcd away for two minutes. Callers get whole answers or refusals, or in the first seconds answers that say that they
// reached nothing. Linearizable reads are
// refused as soon as routers notice. Bounded reads are refused only without a grace period, once tokens may no
// longer be accepted. The alert fires, and the canary notices.
func (e *e2e) outage(grace time.Duration) {
	const long = 2 * time.Minute
	stop := e.askOnce()
	recording := e.record()
	time.Sleep(3 * scrapeEvery)
	e.kubectl("scale", "--namespace=servers", "statefulset/etcd", "--replicas=0")
	e.kubectl("wait", "--namespace=servers", "--for=delete", "pod/etcd-0", "--timeout=1m")
	away := time.Now()
	time.Sleep(long)
	back := time.Now()
	dir := recording()
	e.kubectl("scale", "--namespace=servers", "statefulset/etcd", "--replicas=1")
	e.settled()
	time.Sleep(3 * scrapeEvery)
	well := time.Now().Add(-2 * scrapeEvery)
	all := stop()

	e.count("while etcd is there", all, func(a asked) bool { return a.ended.Before(away.Add(-10*time.Second)) || a.at.After(well) }, func(a asked) error {
		if a.code != codes.OK || !a.complete {
			return errors.New("it is no complete answer")
		}
		return nil
	})
	e.count(fmt.Sprintf("in the first %v without etcd", noticed), all, func(a asked) bool { return a.at.After(away) && a.at.Before(away.Add(noticed)) }, nil)
	e.count("then", all, func(a asked) bool { return a.at.After(away.Add(noticed)) && a.ended.Before(back) }, func(a asked) error {
		switch {
		case (a.linearizable || grace == 0) && a.code != codes.Unavailable:
			return errors.New("it is not refused")
		case !a.linearizable && grace > 0 && (a.code != codes.OK || !a.complete || !a.asOf):
			return errors.New("it is no complete answer with the time at which the token was valid")
		}
		return nil
	})
	rung := e.rung(dir)
	if at := rung[etcdAlert].fired; !at.After(away) {
		e.t.Errorf("%s fired at %v, and etcd went at %v", etcdAlert, at, away)
	}
	if at := rung[answersAlert].held; !at.After(away) {
		e.t.Errorf("the expression of %s came true at %v, and etcd went at %v", answersAlert, at, away)
	}
}

// count logs the outcomes of the chosen calls, and fails the test if judge returns an error for one.
func (e *e2e) count(when string, all []asked, chosen func(asked) bool, judge func(asked) error) {
	e.t.Helper()
	ends, slowest := map[string]int{}, time.Duration(0)
	var bad []string
	for _, a := range all {
		if !chosen(a) {
			continue
		}
		consistency := "bounded"
		if a.linearizable {
			consistency = "linearizable"
		}
		end := fmt.Sprintf("%s %v", consistency, a.code)
		if a.code == codes.OK {
			end += fmt.Sprintf(" complete=%t", a.complete)
		}
		ends[end]++
		slowest = max(slowest, a.ended.Sub(a.at))
		if judge == nil {
			continue
		}
		if err := judge(a); err != nil {
			bad = append(bad, fmt.Sprintf("%s %s: %v: %v", a.at.Format("15:04:05.000"), end, err, a.err))
		}
	}
	var lines []string
	for _, end := range slices.Sorted(maps.Keys(ends)) {
		lines = append(lines, fmt.Sprintf("%d %s", ends[end], end))
	}
	e.t.Logf("%s: %s; the slowest took %v", when, strings.Join(lines, ", "), slowest.Round(time.Millisecond))
	if len(lines) == 0 {
		e.t.Errorf("%s nobody asked", when)
	}
	if len(bad) > 0 {
		e.t.Errorf("%s %d calls went wrong, first:\n%s", when, len(bad), strings.Join(bad[:min(len(bad), most)], "\n"))
	}
}

// askOnce searches with two callers that never repeat a call, until stop is called. One reads
// linearizably, and the other accepts answers up to an hour old.
func (e *e2e) askOnce() (stop func() []asked) {
	ctx, cancel := context.WithCancel(e.t.Context())
	var mu sync.Mutex
	var all []asked
	var running sync.WaitGroup
	for _, linearizable := range []bool{false, true} {
		conn, err := e.dial()
		e.must(err)
		running.Go(func() {
			defer conn.Close()
			for ctx.Err() == nil {
				a := e.ask(ctx, conn, linearizable)
				if ctx.Err() == nil {
					mu.Lock()
					all = append(all, a)
					mu.Unlock()
				}
				time.Sleep(100 * time.Millisecond)
			}
		})
	}
	return func() []asked {
		cancel()
		running.Wait()
		return all
	}
}

// ask searches once. An answer that hides that something is missing fails the test.
func (e *e2e) ask(ctx context.Context, conn *grpc.ClientConn, linearizable bool) asked {
	ctx, cancel := context.WithTimeout(ctx, tryTime)
	defer cancel()
	options := &searchv1.SearchOptions{MaxFiles: 10_000}
	if !linearizable {
		options.Consistency = &searchv1.Consistency{Level: &searchv1.Consistency_Bounded{Bounded: durationpb.New(time.Hour)}}
	}
	a := asked{at: time.Now(), linearizable: linearizable}
	var trailer metadata.MD
	answer, err := searchv1.NewSearchServiceClient(conn).Search(ctx, &searchv1.SearchRequest{Query: heron, Options: options}, grpc.Trailer(&trailer))
	a.ended, a.code, a.err = time.Now(), status.Code(err), err
	a.complete, a.asOf = answer.GetCoverage().GetComplete(), len(trailer.Get(access.AuthorizedAsOf)) > 0
	if err == nil {
		if err := wrong(answer, e.repos); err != nil {
			e.t.Errorf("a wrong answer: %v", err)
		}
	}
	return a
}
