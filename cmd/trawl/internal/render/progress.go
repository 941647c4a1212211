package render

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/schollz/progressbar/v3"

	"github.com/trawl-search/trawl/internal/searchapi"
	ingestv1 "github.com/trawl-search/trawl/proto/trawl/ingest/v1"
)

// linesEvery bounds how often progress within one state is a line of a log.
const linesEvery = 5 * time.Second

// Progress shows how far one request to index is: as a bar on a terminal, as a few lines
// where there is none. It is for one goroutine.
type Progress struct {
	w        io.Writer
	terminal bool
	most     int // attempts
	bar      *progressbar.ProgressBar
	unit     string
	state    ingestv1.State
	attempts uint32 // that failed
	lastLine time.Time
	now      func() time.Time
}

// NewProgress returns a Progress that writes to w, which is a terminal or not. A request gets at most that many attempts.
func NewProgress(w io.Writer, terminal bool, attempts int) *Progress {
	return &Progress{w: w, terminal: terminal, most: attempts, now: time.Now}
}

// Update shows a status.
func (r *Progress) Update(s *ingestv1.RepoStatus) {
	if retried := s.GetState() == ingestv1.State_STATE_QUEUED && s.GetReason() != ""; retried && s.GetAttempts() > r.attempts {
		r.Done()
		r.attempts, r.state = s.GetAttempts(), s.GetState()
		fmt.Fprintf(r.w, "%s: attempt %d of %d failed, and another one follows: %s\n", s.GetName(), s.GetAttempts(), r.most,
			Safe([]byte(strings.TrimPrefix(s.GetReason(), "will be tried again: "))))
		return
	}
	if r.terminal {
		r.draw(s)
		return
	}
	entered := s.GetState() != r.state
	if !entered && r.now().Sub(r.lastLine) < linesEvery {
		return
	}
	r.state, r.lastLine = s.GetState(), r.now()
	line := searchapi.State(s.GetState())
	if p := s.GetProgress(); p.GetDone() > 0 {
		line += " " + amount(p)
	}
	fmt.Fprintf(r.w, "%s: %s\n", s.GetName(), line)
}

// Done ends the bar, so that the next output starts on a clean line.
func (r *Progress) Done() {
	if r.bar != nil {
		// A bar that cannot be cleared is no reason to fail.
		_ = r.bar.Clear()
		r.bar = nil
	}
}

// draw makes a new bar for each state and unit: totals mean something else in each.
func (r *Progress) draw(s *ingestv1.RepoStatus) {
	p := s.GetProgress()
	if r.bar == nil || s.GetState() != r.state || p.GetUnit() != r.unit {
		r.Done()
		r.state, r.unit = s.GetState(), p.GetUnit()
		r.bar = newBar(r.w, description(s), progressbar.OptionShowBytes(p.GetUnit() == "bytes"), progressbar.OptionSetPredictTime(false))
	}
	draw(r.bar, p.GetDone(), p.GetTotal())
}

func description(s *ingestv1.RepoStatus) string {
	words := searchapi.State(s.GetState())
	if unit := s.GetProgress().GetUnit(); unit != "" && unit != "bytes" {
		words += " " + unit
	}
	return words
}

func amount(p *ingestv1.Progress) string {
	text := strconv.FormatUint(p.GetDone(), 10)
	if p.GetTotal() > 0 {
		text += " of " + strconv.FormatUint(p.GetTotal(), 10)
	}
	text = strings.TrimSpace(text + " " + p.GetUnit())
	if p.GetTotal() > 0 {
		text += fmt.Sprintf(", %.0f %%", 100*float64(p.GetDone())/float64(p.GetTotal()))
	}
	return text
}
