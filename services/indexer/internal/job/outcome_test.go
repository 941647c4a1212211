package job

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/trawl-search/trawl/internal/gitsource"
	"github.com/trawl-search/trawl/internal/queue"
	"github.com/trawl-search/trawl/internal/testrun"
)

func TestClip(t *testing.T) {
	for _, reason := range []string{"plain", "bad \xff byte", strings.Repeat("ü", maxReason)} {
		got := clip(reason)
		if !utf8.ValidString(got) || len(got) > maxReason+10 {
			t.Errorf("%d bytes, valid %v", len(got), utf8.ValidString(got))
		}
	}
}

// TestFullDiskIsSaidOnce: the reason names a full disk once, and it does not count as an attempt, whether git or the indexer finds it.
func TestFullDiskIsSaidOnce(t *testing.T) {
	r, e := newRepo(t, nil)
	d := e.want(r.Dir)
	d.NumDelivered = e.Attempts
	lease, err := e.Store.AcquireLease(t.Context(), repoName, time.Minute)
	testrun.Must(t, err)
	for _, full := range []error{
		&gitsource.Failure{Kind: gitsource.NoSpace, Reason: "the indexer's disk is full"}, fmt.Errorf("write a shard: %w", syscall.ENOSPC),
	} {
		outcome, err := e.resolveFailure(t.Context(), d, lease, full)
		if reason := e.status().GetReason(); outcome != Postponed || queue.IsPermanent(err) || strings.Count(reason, "disk is full") != 1 {
			t.Errorf("%v: %s, %v: %s", full, outcome, err, reason)
		}
	}
}

// TestUnreachableHostsAreTriedSoon: the status says of a failure that a host may soon answer again, and of no other.
func TestUnreachableHostsAreTriedSoon(t *testing.T) {
	r, e := newRepo(t, nil)
	d := e.want(r.Dir)
	lease, err := e.Store.AcquireLease(t.Context(), repoName, time.Minute)
	testrun.Must(t, err)
	for kind := gitsource.Unknown; kind <= gitsource.Killed; kind++ {
		d.NumDelivered = e.Attempts
		outcome, _ := e.resolveFailure(t.Context(), d, lease, &gitsource.Failure{Kind: kind, Reason: "away"})
		if s := e.status(); s.GetUnreachable() != (kind == gitsource.Unreachable) || outcome == Failed != (kind != gitsource.NoSpace) {
			t.Errorf("kind %d: %s, %v", kind, outcome, s)
		}
	}
}
