package progress

import (
	"bytes"
	"strings"
	"testing"
	"time"

	ingestv1 "github.com/trawl-search/trawl/proto/trawl/ingest/v1"
)

func status(state ingestv1.State, done, total uint64) *ingestv1.RepoStatus {
	return &ingestv1.RepoStatus{
		Name: "r", State: state, Progress: &ingestv1.Progress{Done: done, Total: total, Unit: "documents"},
	}
}

func TestLinesAreFew(t *testing.T) {
	var out bytes.Buffer
	now := time.Unix(0, 0)
	r := NewReporter(&out, false)
	r.now = func() time.Time { return now }
	r.Update(status(ingestv1.State_STATE_QUEUED, 0, 0))
	for i := range uint64(100) {
		r.Update(status(ingestv1.State_STATE_BUILDING, i+1, 100))
		now = now.Add(100 * time.Millisecond)
	}
	r.Update(status(ingestv1.State_STATE_PUBLISHED, 0, 0))
	r.Done()
	want := "r: queued\nr: building 1 of 100 documents\nr: building 51 of 100 documents\nr: published\n"
	if out.String() != want {
		t.Errorf("got\n%swant\n%s", out.String(), want)
	}
}

func TestBarShowsStateAndTotal(t *testing.T) {
	var out bytes.Buffer
	r := NewReporter(&out, true)
	r.Update(status(ingestv1.State_STATE_FETCHING, 0, 0))
	r.Update(status(ingestv1.State_STATE_BUILDING, 100, 100))
	r.Done()
	for _, want := range []string{"fetching", "building documents", "100/100"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in %q", want, out.String())
		}
	}
}
