package discover

import (
	"context"
	"errors"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/trawl-search/trawl/internal/catalog"
	"github.com/trawl-search/trawl/internal/codehost"
	"github.com/trawl-search/trawl/internal/wait"
	catalogv1 "github.com/trawl-search/trawl/proto/trawl/catalog/v1"
	ingestv1 "github.com/trawl-search/trawl/proto/trawl/ingest/v1"
)

// Bounds of the wait after a failed look, which doubles with each.
const (
	minBackoff = 30 * time.Second
	maxBackoff = time.Hour
)

// follow polls one source until ctx ends, or until all repos of a removed source are
// deleted.
func (d *Discoverer) follow(ctx context.Context, s catalog.Source) {
	host, err := d.Open()
	if err != nil {
		d.Log.ErrorContext(ctx, "cannot make a client for a source", "source", s.Record.GetSpec().GetName(), "error", err)
		return
	}
	defer host.Close()
	defer d.Metrics.forget(s.Record.GetSpec().GetName())
	l := &look{Discoverer: d, host: host, source: s, spec: s.Record.GetSpec()}
	for pause := l.first(ctx); !l.over && wait.Sleep(ctx, pause); pause = time.Until(l.report.GetNextAt().AsTime()) {
		l.once(ctx)
	}
}

// look holds the state of one source between looks.
type look struct {
	*Discoverer

	host   Host
	source catalog.Source
	spec   *ingestv1.Source
	report *ingestv1.SourceReport
	// apart is how long a look may poll after its list, and about how long the host is left alone after a look that succeeded.
	apart time.Duration
	// over: the source was removed and has no repos left.
	over bool
}

// first returns the wait before the first look. A new leader keeps to the previous
// leader's schedule, so that the host is left alone for as long as it asked, unless the
// source changed since, or the previous leader's clock was ahead.
func (l *look) first(ctx context.Context) time.Duration {
	report, err := l.Store.GetSourceReport(ctx, l.spec.GetName())
	looked := report.GetLookedAt().AsTime()
	if err != nil || report == nil || looked.Before(l.source.Record.GetAppliedAt().AsTime()) || looked.After(time.Now().Add(time.Minute)) {
		l.report = &ingestv1.SourceReport{SucceededAt: report.GetSucceededAt(), PolledTo: report.GetPolledTo()}
		return 0
	}
	l.report = report
	return min(time.Until(report.GetNextAt().AsTime()), 2*codehost.Every(l.spec)+maxBackoff)
}

// once looks at the source and writes its report.
func (l *look) once(ctx context.Context) {
	err := l.look(ctx)
	if ctx.Err() != nil {
		return
	}
	now := time.Now()
	l.report.LookedAt, l.report.Reason = timestamppb.New(now), ""
	pause := wait.Jitter(l.apart, 8)
	if l.report.GetPolledTo() != "" {
		pause = 0 // polling took that long, and goes on
	}
	if err == nil {
		l.report.Failures, l.report.SucceededAt = 0, timestamppb.New(now)
	} else {
		l.report.Failures++
		l.report.Reason = err.Error()
		pause = l.pause(err)
		l.Log.WarnContext(ctx, "a look at a source failed", "source", l.spec.GetName(), "error", err, "wait", pause)
	}
	l.Metrics.looked(l.spec.GetName(), l.emptying(), err)
	l.report.NextAt = timestamppb.New(now.Add(pause))
	l.putReport(ctx)
}

func (l *look) putReport(ctx context.Context) {
	if err := l.Store.PutSourceReport(ctx, l.source, l.report); err != nil && ctx.Err() == nil {
		l.Log.WarnContext(ctx, "the report of a source was not written", "source", l.spec.GetName(), "error", err)
	}
}

// emptying reports whether ten or more repos, and more than a tenth of all, are leaving the source. Somebody should look before they are deleted.
func (l *look) emptying() bool {
	leaving := l.report.GetLeaving()
	return !l.source.Record.GetRemoved() && leaving >= 10 && 10*leaving > leaving+l.report.GetRepos()
}

// pause returns how long the host is left alone after a failed look.
func (l *look) pause(err error) time.Duration {
	pause := wait.Jitter(wait.Double(minBackoff, max(l.report.GetFailures(), 1)-1, maxBackoff), 8)
	if refusal, ok := errors.AsType[*codehost.Error](err); ok {
		pause = max(pause, refusal.RetryAfter)
	}
	return pause
}

// look lists the repos of the source and polls their branches. It polls the branches
// of the known repos even if the list failed, since git may work where the API is
// limited.
func (l *look) look(ctx context.Context) error {
	var listed []codehost.Repo
	var ours []*catalogv1.Desired
	var err, failed error
	began := time.Now()
	if !l.source.Record.GetRemoved() {
		listed, err = l.host.List(ctx, l.spec)
	}
	l.apart = max(codehost.Every(l.spec), time.Since(began)) // so that a host is listed for about half of the time at most
	if err == nil {
		if ours, err = l.reconcile(ctx, listed); err != nil && ours == nil {
			return err // a poll of none would begin anew
		}
	} else if ours, failed = l.reposOfSource(ctx); failed != nil {
		return errors.Join(err, failed)
	}
	return errors.Join(err, l.poll(ctx, ours))
}
