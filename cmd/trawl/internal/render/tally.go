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
		t.draw(done, total)
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

func (t *Tally) draw(done, total uint64) {
	if t.bar == nil {
		t.bar = progressbar.NewOptions64(-1,
			progressbar.OptionSetWriter(t.w),
			progressbar.OptionSetDescription(t.unit),
			progressbar.OptionSetWidth(30),
			progressbar.OptionThrottle(50*time.Millisecond),
			progressbar.OptionShowCount(),
			progressbar.OptionShowIts(),
			progressbar.OptionSetItsString(t.unit),
			// Without this the library turns the spinner from a goroutine of its own.
			progressbar.OptionSetSpinnerChangeInterval(0),
		)
	}
	if n := int64(min(total, 1<<62)); n > 0 && n != t.bar.GetMax64() {
		t.bar.ChangeMax64(n)
	}
	_ = t.bar.Set64(int64(min(done, 1<<62))) // it fails only when the terminal is gone
}

// Done ends the bar, so that the next output starts on a clean line.
func (t *Tally) Done() {
	if t.bar != nil {
		_ = t.bar.Clear()
		t.bar = nil
	}
}
