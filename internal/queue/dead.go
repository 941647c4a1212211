package queue

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// DeadLetter is a job that was given up.
type DeadLetter struct {
	Job
	// NumDelivered counts the deliveries before it was given up.
	NumDelivered int `json:"delivered"`
	// Reason is why, in words for people; at most 4096 bytes.
	Reason string `json:"reason"`
	// Time is when.
	Time time.Time `json:"time"`
}

// DeadLetters yields the newest dead letter of each repo that has one, oldest
// first. Letters are kept for 30 days. It ends after the first error.
func (q *Queue) DeadLetters(ctx context.Context) iter.Seq2[DeadLetter, error] {
	return func(yield func(DeadLetter, error) bool) {
		stream, err := q.js.Stream(ctx, DeadStream)
		if errors.Is(err, jetstream.ErrStreamNotFound) {
			return
		}
		if err != nil {
			yield(DeadLetter{}, fmt.Errorf("list dead letters: %w", err))
			return
		}
		for seq := uint64(1); ; {
			letter, at, err := nextLetter(ctx, stream, seq)
			if errors.Is(err, jetstream.ErrMsgNotFound) {
				return
			}
			if !yield(letter, err) || err != nil {
				return
			}
			seq = at + 1
		}
	}
}

// nextLetter reads the first letter at or after a place in the stream.
func nextLetter(ctx context.Context, stream jetstream.Stream, seq uint64) (letter DeadLetter, at uint64, err error) {
	msg, err := stream.GetMsg(ctx, seq, jetstream.WithGetMsgSubject(deadSubject+"*"))
	if err != nil {
		return letter, 0, fmt.Errorf("read dead letter: %w", err)
	}
	if err := json.Unmarshal(msg.Data, &letter); err != nil {
		return letter, 0, fmt.Errorf("decode dead letter %d: %w", msg.Sequence, err)
	}
	return letter, msg.Sequence, nil
}

// Forget drops the dead letter of a repo, if there is one: when it is tried
// again, or deleted.
func (q *Queue) Forget(ctx context.Context, repo string) error {
	stream, err := q.js.Stream(ctx, DeadStream)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return nil
	}
	if err == nil {
		err = stream.Purge(ctx, jetstream.WithPurgeSubject(deadSubject+repoHash(repo)))
	}
	if err != nil {
		return fmt.Errorf("forget dead letter of %q: %w", repo, err)
	}
	return nil
}

func (q *Queue) writeLetter(ctx context.Context, letter DeadLetter) error {
	data, err := json.Marshal(letter)
	if err == nil {
		_, err = q.js.Publish(ctx, deadSubject+repoHash(letter.Repo), data)
	}
	if err != nil {
		return fmt.Errorf("write dead letter of %q: %w", letter.Repo, err)
	}
	return nil
}

// clip bounds a reason, without leaving half a character at its end.
func clip(reason string) string {
	return strings.ToValidUTF8(reason[:min(len(reason), maxReason)], "")
}
