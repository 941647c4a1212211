package render

import (
	"fmt"
	"io"
	"time"

	"github.com/schollz/progressbar/v3"
)

// Tally shows the progress of a task with many parts: how many are done, how fast, and how long the
// rest will take. It is for one goroutine.
type Tally struct {
	w        io.Writer
	terminal bool
	unit     string
	bar      *progressbar.ProgressBar
	now      func() time.Time
	began    time.Time
	first    uint64 // done when it began
	lastLine time.Time
}

// NewTally returns a tally of things of a unit to w, which is a terminal or not.
func NewTally(w io.Writer, terminal bool, unit string) *Tally {
	return &Tally{w: w, terminal: terminal, unit: unit, now: time.Now}
}

// Update shows how many are done. Both numbers may grow; the total is 0 while it is not
// known.
func (t *Tally) Update(done, total uint64) {
	now := t.now()
	if t.began.IsZero() {
		t.began, t.first = now, done
	}
	if t.terminal {
		if t.bar == nil {
			t.bar = newBar(t.w, t.unit, progressbar.OptionShowIts(), progressbar.OptionSetItsString(t.unit))
		}
		draw(t.bar, done, total)
		return
	}
	if !t.lastLine.IsZero() && now.Sub(t.lastLine) < linesEvery && (done < total || total == 0) {
		return
	}
	t.lastLine = now
	fmt.Fprintf(t.w, "%d of %d %s%s\n", done, total, t.unit, t.pace(now, done, total))
}

// pace is the rate since the beginning and the time left at it, once there is one.
func (t *Tally) pace(now time.Time, done, total uint64) string {
	took := now.Sub(t.began)
	if done <= t.first || took <= 0 {
		return ""
	}
	rate := float64(done-t.first) / took.Seconds()
	text := fmt.Sprintf(", %.1f a second", rate)
	if done < total {
		left := time.Duration(float64(total-done) / rate * float64(time.Second))
		text += fmt.Sprintf(", %v left", left.Round(time.Second))
	}
	return text
}

// newBar returns a bar on a terminal, whose total is not known yet.
func newBar(w io.Writer, description string, more ...progressbar.Option) *progressbar.ProgressBar {
	return progressbar.NewOptions64(-1, append(more,
		progressbar.OptionSetWriter(w),
		progressbar.OptionSetDescription(description),
		progressbar.OptionSetWidth(30),
		progressbar.OptionThrottle(50*time.Millisecond),
		progressbar.OptionShowCount(),
		// Without this the library turns the spinner from a goroutine of its own, which writes on after Done.
		progressbar.OptionSetSpinnerChangeInterval(0),
	)...)
}

// draw shows how much is done. The total is 0 while it is not known.
func draw(bar *progressbar.ProgressBar, done, total uint64) {
	if n := int64(min(total, 1<<62)); n > 0 && n != bar.GetMax64() {
		bar.ChangeMax64(n)
	}
	_ = bar.Set64(int64(min(done, 1<<62))) // it fails only when the terminal is gone
}

// Done ends the bar, so that the next output starts on a clean line.
func (t *Tally) Done() {
	if t.bar != nil {
		_ = t.bar.Clear()
		t.bar = nil
	}
}
