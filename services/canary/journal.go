package canary

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// repeatEvery is how often the log repeats that answers are not complete.
const repeatEvery = time.Minute

// journal logs how the answers of each door are, when that changes and, where they are not complete, again every repeatEvery: a
// canary asks twice a second while something is wrong. It is safe for concurrent use.
type journal struct {
	log *slog.Logger

	mu   sync.Mutex
	last map[string]entry // by door
}

type entry struct {
	outcome string
	at      time.Time
}

// answered logs the outcome of an answer, and its error if it has one. An acknowledged request is complete.
func (j *journal) answered(ctx context.Context, door, outcome string, err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	complete := outcome == "complete"
	if last := j.last[door]; last.outcome == outcome && (complete || time.Since(last.at) < repeatEvery) {
		return
	}
	j.last[door] = entry{outcome, time.Now()}
	if complete {
		j.log.InfoContext(ctx, "an answer to the canary", "door", door, "outcome", outcome)
	} else {
		j.log.WarnContext(ctx, "an answer to the canary", "door", door, "outcome", outcome, "error", err)
	}
}
