package render

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	ingestv1 "github.com/trawl-search/trawl/proto/trawl/ingest/v1"
)

// Nothing may write to the terminal once a reporter is done.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func status(state ingestv1.State, done, total uint64) *ingestv1.RepoStatus {
	return &ingestv1.RepoStatus{
		Name: "r", State: state, Progress: &ingestv1.Progress{Done: done, Total: total, Unit: "documents"},
	}
}

func TestLinesAreFew(t *testing.T) {
	var out bytes.Buffer
	now := time.Unix(0, 0)
	r := NewProgress(&out, false, 5)
	r.now = func() time.Time { return now }
	r.Update(status(ingestv1.State_STATE_QUEUED, 0, 0))
	for i := range uint64(100) {
		r.Update(status(ingestv1.State_STATE_BUILDING, i+1, 100))
		now = now.Add(100 * time.Millisecond)
	}
	r.Update(status(ingestv1.State_STATE_PUBLISHED, 0, 0))
	r.Done()
	want := "r: queued\nr: building 1 of 100 documents, 1 %\nr: building 51 of 100 documents, 51 %\nr: published\n"
	if out.String() != want {
		t.Errorf("got\n%swant\n%s", out.String(), want)
	}
}

func TestBarShowsStateAndTotal(t *testing.T) {
	var out bytes.Buffer
	r := NewProgress(&out, true, 5)
	r.Update(status(ingestv1.State_STATE_FETCHING, 0, 0))
	r.Update(status(ingestv1.State_STATE_BUILDING, 100, 100))
	r.Done()
	for _, want := range []string{"fetching", "building documents", "100/100"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in %q", want, out.String())
		}
	}
}

// TestRetriesHaveReasons: an attempt that failed is a line with its reason, once, on a terminal too.
func TestRetriesHaveReasons(t *testing.T) {
	for _, terminal := range []bool{false, true} {
		var out bytes.Buffer
		r := NewProgress(&out, terminal, 5)
		r.Update(status(ingestv1.State_STATE_FETCHING, 1, 4))
		for attempt := range uint32(2) {
			retry := &ingestv1.RepoStatus{Name: "r", State: ingestv1.State_STATE_QUEUED, Reason: "will be tried again: the host\x1b is away", Attempts: attempt + 1}
			r.Update(retry)
			r.Update(retry)
			r.Update(status(ingestv1.State_STATE_FETCHING, 0, 0))
		}
		r.Done()
		for _, want := range []string{"attempt 1 of 5 failed", "attempt 2 of 5 failed"} {
			if line := "r: " + want + `, and another one follows: the host\x1b is away` + "\n"; strings.Count(out.String(), line) != 1 {
				t.Errorf("terminal %v: %q", terminal, out.String())
			}
		}
	}
}

// TestTally: few lines, with the rate and the time left; a bar on a terminal.
func TestTally(t *testing.T) {
	var out bytes.Buffer
	now := time.Unix(0, 0)
	tally := NewTally(&out, false, "repos")
	tally.now = func() time.Time { return now }
	tally.Update(0, 0)
	for i := range uint64(21) {
		tally.Update(100+i*10, 300)
		now = now.Add(time.Second)
	}
	tally.Done()
	want := "0 of 0 repos\n150 of 300 repos, 30.0 a second, 5s left\n200 of 300 repos, 20.0 a second, 5s left\n" +
		"250 of 300 repos, 16.7 a second, 3s left\n300 of 300 repos, 15.0 a second\n"
	if out.String() != want {
		t.Errorf("got\n%swant\n%s", out.String(), want)
	}
	out.Reset()
	bar := NewTally(&out, true, "repos")
	bar.Update(1, 4)
	bar.Update(4, 4)
	bar.Done()
	if !strings.Contains(out.String(), "4/4") {
		t.Errorf("drawn %q", out.String())
	}
}
