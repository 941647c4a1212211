package canary

import (
	"bytes"
	"errors"
	"log/slog"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestJournal: an operator sees each change once, and a trouble that lasts each minute, however often the canary asks.
func TestJournal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		j := journal{log: slog.New(slog.NewTextHandler(&out, nil)), last: map[string]entry{}}
		say := func(door, outcome string, err error, times int) {
			for range times {
				j.answered(t.Context(), door, outcome, err)
				time.Sleep(pause)
			}
		}
		say("grpc", "complete", nil, 1000)
		say("json", "complete", nil, 1000)
		say("grpc", "failed", errors.New("down"), int(150*time.Second/pause))
		say("grpc", "incomplete", nil, 1)
		say("grpc", "complete", nil, 1000)
		got := regexp.MustCompile(`(?m)^time=\S+ | msg="an answer to the canary"`).ReplaceAllString(out.String(), "")
		want := `level=INFO door=grpc outcome=complete
level=INFO door=json outcome=complete
` + strings.Repeat("level=WARN door=grpc outcome=failed error=down\n", 3) + `level=WARN door=grpc outcome=incomplete error=<nil>
level=INFO door=grpc outcome=complete
`
		if got != want {
			t.Errorf("the log has\n%s\nwant\n%s", got, want)
		}
	})
}
