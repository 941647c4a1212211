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
	// Reason is why it was given up, for people; at most 4096 bytes.
	Reason string `json:"reason"`
	// Time is when it was given up.
	Time time.Time `json:"time"`
	// Place is its position among the letters; it grows with time.
	Place uint64 `json:"-"`
}

// ErrNoLetter means that a repo has no dead letter.
var ErrNoLetter = errors.New("no dead letter")

// DeadLetter reads the newest dead letter of a repo; ErrNoLetter if it has none.
func (q *Queue) DeadLetter(ctx context.Context, repo string) (letter DeadLetter, err error) {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	stream, err := q.js.Stream(ctx, q.cfg.deadStream())
	if err == nil {
		var msg *jetstream.RawStreamMsg
		if msg, err = stream.GetLastMsgForSubject(ctx, q.cfg.deadSubject()+repoHash(repo)); err == nil {
			letter, err = decodeLetter(msg)
		}
	}
	if errors.Is(err, jetstream.ErrStreamNotFound) || errors.Is(err, jetstream.ErrMsgNotFound) {
		return letter, fmt.Errorf("%q: %w", repo, ErrNoLetter)
	}
	if err != nil {
		return letter, fmt.Errorf("read dead letter of %q: %w", repo, err)
	}
	return letter, nil
}

// DeadLetters yields the newest dead letter of each repo that has one, oldest first,
// from the first one after a place (0: from the beginning). Letters are kept for 30
// days. It ends after the first error.
func (q *Queue) DeadLetters(ctx context.Context, after uint64) iter.Seq2[DeadLetter, error] {
	return func(yield func(DeadLetter, error) bool) {
		stream, err := q.letters(ctx)
		if errors.Is(err, jetstream.ErrStreamNotFound) {
			return
		}
		if err != nil {
			yield(DeadLetter{}, fmt.Errorf("list dead letters: %w", err))
			return
		}
		for {
			letter, err := q.nextLetter(ctx, stream, after+1)
			if errors.Is(err, jetstream.ErrMsgNotFound) {
				return
			}
			if !yield(letter, err) || err != nil {
				return
			}
			after = letter.Place
		}
	}
}

func (q *Queue) letters(ctx context.Context) (jetstream.Stream, error) {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	return q.js.Stream(ctx, q.cfg.deadStream())
}

// nextLetter reads the first letter at or after a place in the stream.
func (q *Queue) nextLetter(ctx context.Context, stream jetstream.Stream, place uint64) (DeadLetter, error) {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	msg, err := stream.GetMsg(ctx, place, jetstream.WithGetMsgSubject(q.cfg.deadSubject()+"*"))
	if err != nil {
		return DeadLetter{}, fmt.Errorf("read dead letter: %w", err)
	}
	return decodeLetter(msg)
}

func decodeLetter(msg *jetstream.RawStreamMsg) (DeadLetter, error) {
	letter := DeadLetter{Place: msg.Sequence}
	if err := json.Unmarshal(msg.Data, &letter); err != nil {
		return letter, fmt.Errorf("decode dead letter %d: %w", msg.Sequence, err)
	}
	return letter, nil
}

// Forget drops the dead letter of a repo, if there is one. Call it when the repo is
// tried again, or deleted.
func (q *Queue) Forget(ctx context.Context, repo string) error {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	stream, err := q.js.Stream(ctx, q.cfg.deadStream())
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return nil
	}
	if err == nil {
		err = stream.Purge(ctx, jetstream.WithPurgeSubject(q.cfg.deadSubject()+repoHash(repo)))
	}
	if err != nil {
		return fmt.Errorf("forget dead letter of %q: %w", repo, err)
	}
	return nil
}

func (q *Queue) writeLetter(ctx context.Context, letter DeadLetter) error {
	data, err := json.Marshal(letter)
	if err == nil {
		_, err = q.js.Publish(ctx, q.cfg.deadSubject()+repoHash(letter.Repo), data)
	}
	if err != nil {
		return fmt.Errorf("write dead letter of %q: %w", letter.Repo, err)
	}
	return nil
}

// clip bounds a reason, and does not cut a character in half.
func clip(reason string) string {
	return strings.ToValidUTF8(reason[:min(len(reason), maxReason)], "")
}
