package queue

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// consumerName and bulkConsumerName are the consumers of the stream of jobs.
const (
	consumerName     = "indexers"
	bulkConsumerName = "indexers-bulk"
)

// Limits of the streams.
const (
	// maxMessage bounds one message; names are bounded far below.
	maxMessage = 64 << 10
	maxJobs    = 1_000_000
	maxDead    = 100_000
	deadAge    = 30 * 24 * time.Hour
	// maxReason bounds the reason in a dead letter, in bytes.
	maxReason = 4096
	// answerTimeout bounds the wait for one answer of the server, whatever the
	// caller's deadline: a request to a stream whose leader died is never answered.
	answerTimeout = 5 * time.Second
)

// Job says that a repo has work.
type Job struct {
	// Repo is the repo's name.
	Repo string `json:"repo"`
	// Epoch is the request that asked for it.
	Epoch uint64 `json:"epoch"`
	// Attempt distinguishes the jobs of one request: a job with the same three fields is
	// accepted once within Config.Duplicates.
	Attempt uint64 `json:"attempt,omitempty"`
	// Bulk jobs are those of repos that were never indexed, or are built anew. There may be very many at once. Others do not wait behind them: both
	// take turns.
	Bulk bool `json:"bulk,omitempty"`
}

// id is the id by which the server drops duplicates, of both kinds. The name is hashed, since it may
// hold bytes that no header can.
func (j Job) id() string {
	return fmt.Sprintf("%s-%d-%d", repoHash(j.Repo), j.Epoch, j.Attempt)
}

func repoHash(repo string) string {
	sum := sha256.Sum256([]byte(repo))
	return hex.EncodeToString(sum[:16])
}

// Queue publishes and consumes jobs. It is safe for concurrent use and needs no
// closing; the caller keeps and closes the connection.
type Queue struct {
	js     jetstream.JetStream
	cfg    Config
	logger *slog.Logger
}

// A connection is replaced after pingsMissed intervals without an answer: when the address
// of this machine changes, no error reports it. The library's own interval is two minutes.
const (
	pingInterval = 5 * time.Second
	pingsMissed  = 2
)

// Connect makes a connection that reconnects for ever. It does not wait for the
// server: while that is away, or refuses the credentials, operations return errors.
// The caller closes the connection.
func Connect(url string, opts ...nats.Option) (*nats.Conn, error) {
	standard := []nats.Option{
		nats.Name("trawl"),
		nats.RetryOnFailedConnect(true),
		nats.MaxReconnects(-1),
		nats.ReconnectWait(500 * time.Millisecond),
		nats.PingInterval(pingInterval),
		nats.MaxPingsOutstanding(pingsMissed),
		nats.ReconnectBufSize(-1), // a failure to send is an error, not a hidden delay
		nats.IgnoreAuthErrorAbort(),
	}
	nc, err := nats.Connect(url, append(standard, opts...)...)
	if err != nil {
		return nil, fmt.Errorf("connect to NATS: %w", err)
	}
	return nc, nil
}

// New makes a queue on a connection. It does not talk to the server; see Ensure.
func New(nc *nats.Conn, cfg Config) (*Queue, error) {
	cfg = cfg.withDefaults()
	if err := cfg.check(); err != nil {
		return nil, fmt.Errorf("queue configuration: %w", err)
	}
	js, err := jetstream.New(nc, jetstream.WithDefaultTimeout(answerTimeout))
	if err != nil {
		return nil, fmt.Errorf("make JetStream client: %w", err)
	}
	return &Queue{js: js, cfg: cfg, logger: cfg.Logger.With("part", "queue")}, nil
}

// Publisher adds jobs to a queue, as Queue.Publish does.
type Publisher interface {
	Publish(ctx context.Context, job Job) error
}

// wakeTimeout bounds how long Wake waits for a queue that is away.
const wakeTimeout = time.Second

// Wake wakes an indexer for a request that etcd has. It only logs a failure: the reconciler
// finds the request in etcd.
func Wake(ctx context.Context, queue Publisher, job Job, log *slog.Logger) {
	ctx, cancel := context.WithTimeout(ctx, wakeTimeout)
	defer cancel()
	if err := queue.Publish(ctx, job); err != nil {
		log.WarnContext(ctx, "could not wake an indexer; the reconciler will find the request", "repo", job.Repo, "epoch", job.Epoch, "error", err)
	}
}

// Publish adds a job. Nil means that the job, or an earlier duplicate, is on the
// server's disk. It makes the streams if they are missing.
func (q *Queue) Publish(ctx context.Context, job Job) error {
	return q.publish(ctx, job, job.id())
}

func (q *Queue) publish(ctx context.Context, job Job, id string) error {
	data, err := json.Marshal(job)
	if err != nil {
		return fmt.Errorf("encode job of %q: %w", job.Repo, err)
	}
	if len(data) > maxMessage {
		return fmt.Errorf("publish job: %d bytes, at most %d", len(data), maxMessage)
	}
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	subject := q.cfg.jobSubject(job.Bulk)
	_, err = q.js.Publish(ctx, subject, data, jetstream.WithMsgID(id), jetstream.WithRetryAttempts(0))
	if errors.Is(err, jetstream.ErrNoStreamResponse) || errors.Is(err, nats.ErrNoResponders) {
		// Nobody listens on the subject: a new server, or one whose data is gone.
		if err = q.ensureOnce(ctx); err == nil {
			_, err = q.js.Publish(ctx, subject, data, jetstream.WithMsgID(id))
		}
	}
	if err != nil {
		return fmt.Errorf("publish job of %q: %w", job.Repo, err)
	}
	return nil
}
