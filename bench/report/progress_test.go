package report

import (
	"bytes"
	"strings"
	"testing"
)

// TestProgress: a log gets one line for each tenth, a terminal one that is redrawn.
func TestProgress(t *testing.T) {
	for _, terminal := range []bool{false, true} {
		var b bytes.Buffer
		p := NewProgress(&b, "work", 40)
		p.terminal = terminal
		for range 40 {
			p.Step("part")
		}
		lines, drawn := strings.Count(b.String(), "\n"), strings.Count(b.String(), "\r")
		if want := map[bool][2]int{false: {10, 0}, true: {1, 40}}[terminal]; lines != want[0] || drawn != want[1] {
			t.Errorf("terminal %t: %d lines, drawn %d times", terminal, lines, drawn)
		}
		if !strings.Contains(b.String(), "██████░░░░░░░░░░░░░░░░░░ 10/40") && terminal {
			t.Errorf("no bar of a quarter in %q", b.String())
		}
	}
}
