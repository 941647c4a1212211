package gitsource

import (
	"bytes"
	"strconv"

	"github.com/trawl-search/trawl/internal/lazyregexp"
)

// maxKept bounds how much of git's error output is kept, in bytes: its end, which holds
// the reason.
const maxKept = 16 << 10

// lineWriter splits git's error output into lines. It reports all lines and keeps those
// that are not progress, which ends in a carriage return.
type lineWriter struct {
	onLine func(string) // may be nil
	kept   []byte
	line   []byte
}

// Write implements io.Writer.
func (w *lineWriter) Write(p []byte) (int, error) {
	for _, c := range p {
		if c != '\n' && c != '\r' {
			if len(w.line) < maxKept {
				w.line = append(w.line, c)
			}
			continue
		}
		w.end(c == '\n')
	}
	return len(p), nil
}

func (w *lineWriter) end(keep bool) {
	if w.onLine != nil {
		w.onLine(string(w.line))
	}
	if keep && !progressLine().Match(w.line) {
		w.kept = append(append(w.kept, w.line...), '\n')
		w.kept = w.kept[max(0, len(w.kept)-maxKept):]
	}
	w.line = w.line[:0]
}

// text returns the kept lines.
func (w *lineWriter) text() string {
	if len(w.line) > 0 {
		w.end(true)
	}
	return string(bytes.TrimSpace(w.kept))
}

// progressLine matches lines such as "Receiving objects:  45% (450/1000), 12.00 MiB".
var progressLine = lazyregexp.New(`^(?:remote: )?(\w+ \w+): +\d+%? \(?(?:(\d+)/(\d+)\))?`)

// receiving parses git's progress of received objects.
func receiving(line string) (Progress, bool) {
	m := progressLine().FindStringSubmatch(line)
	if m == nil || m[1] != "Receiving objects" || m[3] == "" {
		return Progress{}, false
	}
	done, err1 := strconv.ParseUint(m[2], 10, 64)
	total, err2 := strconv.ParseUint(m[3], 10, 64)
	return Progress{Done: done, Total: total}, err1 == nil && err2 == nil
}
