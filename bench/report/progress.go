package report

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"
)

// Progress shows how far long work is: on a terminal as a bar that is redrawn,
// elsewhere as one line for each tenth.
type Progress struct {
	w        io.Writer
	terminal bool
	what     string
	total    int
	done     int
	started  time.Time
}

// NewProgress starts the clock for work in total parts and shows progress on w.
func NewProgress(w io.Writer, what string, total int) *Progress {
	return &Progress{w: w, terminal: isTerminal(w), what: what, total: max(total, 1), started: time.Now()}
}

func isTerminal(w io.Writer) bool {
	file, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// Step reports that a part is done.
func (p *Progress) Step(part string) {
	before := p.done * 10 / p.total
	p.done++
	if !p.terminal {
		if p.done*10/p.total > before {
			fmt.Fprintln(p.w, p.line(part))
		}
		return
	}
	fmt.Fprintf(p.w, "\r\x1b[K%s", p.line(part))
	if p.done == p.total {
		fmt.Fprintln(p.w)
	}
}

// line returns the bar, with the remaining time if all parts take equally long.
func (p *Progress) line(part string) string {
	const width = 24
	full := min(width*p.done/p.total, width)
	took := time.Since(p.started)
	left := took / time.Duration(p.done) * time.Duration(max(p.total-p.done, 0))
	return fmt.Sprintf("%s %s%s %d/%d, %s left, %s", p.what, strings.Repeat("█", full), strings.Repeat("░", width-full),
		p.done, p.total, left.Round(time.Second), part)
}
