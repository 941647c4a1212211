package discover

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/trawl-search/trawl/internal/catalog"
	"github.com/trawl-search/trawl/internal/codehost"
	catalogv1 "github.com/trawl-search/trawl/proto/trawl/catalog/v1"
	ingestv1 "github.com/trawl-search/trawl/proto/trawl/ingest/v1"
)

// The waits after looks that failed, which double.
const (
	minBackoff = 30 * time.Second
	maxBackoff = time.Hour
)

// follow looks at one source again and again, until ctx ends or nothing is left of
// a source that was removed.
func (d *Discoverer) follow(ctx context.Context, s catalog.Source) {
	host, err := d.Open()
	if err != nil {
		d.Log.ErrorContext(ctx, "cannot make a client for a source", "source", s.Record.GetSpec().GetName(), "error", err)
		return
	}
	defer host.Close()
	defer d.Metrics.forget(s.Record.GetSpec().GetName())
	l := &look{Discoverer: d, host: host, source: s, spec: s.Record.GetSpec()}
	for wait := l.first(ctx); !l.over && pause(ctx, wait); wait = time.Until(l.report.GetNextAt().AsTime()) {
		l.once(ctx)
	}
}

// look is what is known of one source between looks.
type look struct {
	*Discoverer

	host   Host
	source catalog.Source
	spec   *ingestv1.Source
	report *ingestv1.SourceReport
	// over: it was removed, and nothing is left of it.
	over bool
}

// first is how long the first look waits: a new leader keeps to what the one before
// has promised a host, unless the source has changed since.
func (l *look) first(ctx context.Context) time.Duration {
	report, err := l.Store.GetSourceReport(ctx, l.spec.GetName())
	if err != nil || report == nil || report.GetLookedAt().AsTime().Before(l.source.Record.GetAppliedAt().AsTime()) {
		l.report = &ingestv1.SourceReport{SucceededAt: report.GetSucceededAt()}
		return 0
	}
	l.report = report
	return min(time.Until(report.GetNextAt().AsTime()), 2*codehost.Every(l.spec)+maxBackoff)
}

// once looks at the source, and notes how it went.
func (l *look) once(ctx context.Context) {
	err := l.look(ctx)
	if ctx.Err() != nil {
		return
	}
	now := time.Now()
	l.report.LookedAt, l.report.Reason = timestamppb.New(now), ""
	wait := jitter(codehost.Every(l.spec))
	if err == nil {
		l.report.Failures, l.report.SucceededAt = 0, timestamppb.New(now)
	} else {
		l.report.Failures++
		l.report.Reason = err.Error()
		wait = l.backoff(err)
		l.Log.WarnContext(ctx, "a look at a source failed", "source", l.spec.GetName(), "error", err, "wait", wait)
	}
	l.Metrics.looked(l.spec.GetName(), err)
	l.report.NextAt = timestamppb.New(now.Add(wait))
	if err := l.Store.PutSourceReport(ctx, l.source, l.report); err != nil && ctx.Err() == nil {
		l.Log.WarnContext(ctx, "a look at a source was not noted", "source", l.spec.GetName(), "error", err)
	}
}

// backoff is how long a host is left alone that did not answer well.
func (l *look) backoff(err error) time.Duration {
	wait := minBackoff
	for i := uint32(1); i < l.report.GetFailures() && wait < maxBackoff; i++ {
		wait *= 2
	}
	wait = jitter(min(wait, maxBackoff))
	if told, ok := errors.AsType[*codehost.Error](err); ok {
		wait = max(wait, told.RetryAfter)
	}
	return wait
}

// look asks for the repos, and for those of the source where their branches are.
// The branches are looked at also when the list failed: git may work where the API
// has limits.
func (l *look) look(ctx context.Context) error {
	var listed []codehost.Repo
	var ours []*catalogv1.Desired
	var err, failed error
	if !l.source.Record.GetRemoved() {
		listed, err = l.host.List(ctx, l.spec)
	}
	if err == nil {
		ours, err = l.reconcile(ctx, listed)
	} else if ours, failed = l.ours(ctx); failed != nil {
		return errors.Join(err, failed)
	}
	return errors.Join(err, l.poll(ctx, ours))
}

// jitter keeps sources from looking at the same moment for ever.
func jitter(d time.Duration) time.Duration { return d*7/8 + rand.N(d/4+1) }

// pause waits; false when ctx has ended.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(max(d, 0))
	defer timer.Stop()
	select {
	case <-timer.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}
