package ingest

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/trawl-search/trawl/internal/catalog"
	"github.com/trawl-search/trawl/internal/codehost"
	"github.com/trawl-search/trawl/internal/fair"
	"github.com/trawl-search/trawl/internal/gitsource/origin"
	"github.com/trawl-search/trawl/internal/queue"
	catalogv1 "github.com/trawl-search/trawl/proto/trawl/catalog/v1"
	ingestv1 "github.com/trawl-search/trawl/proto/trawl/ingest/v1"
)

// WebhookPattern is the pattern of the URLs of webhooks. Each source has its own.
const WebhookPattern = "POST /hooks/{source}"

const (
	// maxBody bounds a webhook in bytes.
	maxBody = 4 << 20
	// maxBodies bounds the webhooks that are in memory, in bytes. The addresses of senders
	// share them, in pieces of that many bytes, so that senders who send slowly hold little.
	maxBodies, piece = 256 << 20, 64 << 10
	// patience bounds the time in which the body of a webhook must arrive.
	patience = 5 * time.Second
	// webhookTimeout bounds the time of one webhook.
	webhookTimeout = 10 * time.Second
)

// Webhooks accepts the webhooks with which Git hosts report pushes. It trusts a webhook only
// if it is signed with the secret of the repo's source, and takes from it only which repo and
// branches were pushed. It is safe for concurrent use.
type Webhooks struct {
	store   *catalog.Store
	sources *catalog.SourceView
	jobs    queue.Publisher
	secrets codehost.Secrets
	apart   time.Duration
	metrics *WebhookMetrics
	log     *slog.Logger

	patience time.Duration
	bodies   *fair.Pool
	// another is a source that a webhook was sent to. It stands in for sources that do not
	// exist, whose webhooks are refused after the same steps.
	another atomic.Pointer[ingestv1.Source]
	// warnings bounds the lines in the log.
	warnings rate.Sometimes
}

// NewWebhooks returns a handler. The sources are those of the store; it does not close them. It
// requests the indexing of one repo at most once in the time apart.
func NewWebhooks(store *catalog.Store, sources *catalog.SourceView, jobs queue.Publisher, secrets codehost.Secrets, apart time.Duration, metrics *WebhookMetrics, log *slog.Logger) *Webhooks {
	return &Webhooks{
		store: store, sources: sources, jobs: jobs, secrets: secrets, apart: apart, metrics: metrics, log: log, patience: patience,
		bodies: fair.NewPool(maxBodies), warnings: rate.Sometimes{Interval: time.Second},
	}
}

// outcome is what became of a webhook, with the status and text of the response.
type outcome struct {
	name   string
	status int
	text   string
}

var (
	queued  = outcome{"queued", http.StatusAccepted, "the repo will be indexed"}
	merged  = outcome{"merged", http.StatusAccepted, "a request that waits already covers the push"}
	current = outcome{"current", http.StatusOK, "nothing that is indexed has changed"}
	ignored = outcome{"ignored", http.StatusOK, "no push to a repo of this source"}
	// forged is also the outcome for a source that does not exist.
	forged   = outcome{"forged", http.StatusUnauthorized, "not signed with the secret of a source of this name"}
	tooLarge = outcome{"too_large", http.StatusRequestEntityTooLarge, "the webhook is too large"}
	tooSlow  = outcome{"too_slow", http.StatusRequestTimeout, "the webhook took too long to arrive"}
	failed   = outcome{"failed", http.StatusServiceUnavailable, "try again later"}
)

// outcomes are all outcomes, for the metrics.
var outcomes = []outcome{queued, merged, current, ignored, forged, tooLarge, tooSlow, failed}

// ServeHTTP implements http.Handler.
func (h *Webhooks) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), webhookTimeout)
	defer cancel()
	done, err := h.receive(ctx, w, r)
	if err != nil {
		// Anybody can send webhooks that fail. The metrics count them all.
		h.warnings.Do(func() {
			h.log.WarnContext(ctx, "could not handle a webhook", "source", r.PathValue("source"), "outcome", done.name, "error", err)
		})
	}
	h.metrics.count(done)
	http.Error(w, done.text, done.status)
}

// receive reads a webhook before it looks at whom it is for. So nothing shows who cannot sign
// whether there is a source of that name.
func (h *Webhooks) receive(ctx context.Context, w http.ResponseWriter, r *http.Request) (outcome, error) {
	body, give, done, err := h.read(w, r)
	defer give()
	if err != nil {
		w.Header().Set("Connection", "close") // the server would read the rest
		return done, err
	}
	name := r.PathValue("source")
	source, err := h.sources.Get(name)
	exists := err == nil
	switch {
	case exists:
		h.another.Store(source)
	case errors.Is(err, catalog.ErrNotFound):
		source = h.another.Load()
	default:
		return failed, err
	}
	secret, unset := h.secrets.Get(source.GetWebhookSecret())
	push, err := codehost.ReadHook(source, r.Header, body, secret)
	switch {
	case !exists:
		return forged, nil
	case errors.Is(err, codehost.ErrForged):
		return forged, unset
	case err != nil:
		return ignored, nil // it reports no push
	}
	return h.handle(ctx, name, push)
}

// read reads the body, in bounded size and time, and takes its bytes until give. An error
// goes to the log only.
func (h *Webhooks) read(w http.ResponseWriter, r *http.Request) (body []byte, give func(), done outcome, err error) {
	from, taken := fair.Network(r.RemoteAddr), int64(0)
	give = func() { h.bodies.Give(from, taken) }
	conn := http.NewResponseController(w)
	if err := conn.SetReadDeadline(time.Now().Add(h.patience)); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return nil, give, failed, fmt.Errorf("limit the time of a webhook: %w", err)
	}
	take := func(n int64) bool {
		ok := h.bodies.Take(from, n)
		if ok {
			taken += n
		}
		return ok
	}
	var pieces [][]byte
	for rest := http.MaxBytesReader(w, r.Body, maxBody); err == nil; {
		if !take(piece) {
			return nil, give, failed, errManyBodies
		}
		read := bytes.NewBuffer(make([]byte, 0, piece))
		_, err = io.CopyN(read, rest, piece-bytes.MinRead) // the buffer does not grow
		pieces = append(pieces, read.Bytes())
	}
	if _, large := errors.AsType[*http.MaxBytesError](err); large {
		return nil, give, tooLarge, err
	}
	if !errors.Is(err, io.EOF) {
		return nil, give, tooSlow, fmt.Errorf("read a webhook: %w", err)
	}
	// The server notices by reading that the sender has gone, so that read must not time
	// out.
	if err := conn.SetReadDeadline(time.Time{}); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return nil, give, failed, fmt.Errorf("limit the time of a webhook: %w", err)
	}
	if len(pieces) == 1 {
		return pieces[0], give, outcome{}, nil
	}
	split := taken
	if !take(split) {
		return nil, give, failed, errManyBodies
	}
	body = bytes.Join(pieces, nil)
	h.bodies.Give(from, split)
	taken -= split
	return body, give, outcome{}, nil
}

var errManyBodies = errors.New("too many webhooks at once")

// handle requests the indexing of the repo of a push, unless nothing that is indexed has
// changed. It must read the desired state before the root: only then does a root that
// satisfies the state and has the pushed commits cover this push.
func (h *Webhooks) handle(ctx context.Context, source string, push codehost.Push) (outcome, error) {
	name, err := origin.RepoName(push.CloneURL)
	if err != nil {
		return ignored, nil //nolint:nilerr // it names no repo
	}
	desired, err := h.store.GetDesired(ctx, name)
	switch {
	case errors.Is(err, catalog.ErrNotFound), err == nil && desired.Record.GetSource() != source:
		return ignored, nil
	case err != nil:
		return failed, err
	}
	root, err := h.store.GetRoot(ctx, name)
	if err != nil && !errors.Is(err, catalog.ErrNotFound) {
		return failed, err
	}
	if !changes(desired.Record, root.Record, push) {
		return current, nil
	}
	now := time.Now()
	epoch, _, err := h.store.Refresh(ctx, name, pushedBranch(desired.Record, root.Record, push, now), now, h.apart)
	switch {
	case errors.Is(err, catalog.ErrNotFound):
		return ignored, nil
	case err != nil:
		return failed, err
	case epoch == 0:
		return merged, nil
	}
	queue.Wake(ctx, h.jobs, queue.Job{Repo: name, Epoch: epoch}, h.log)
	return queued, nil
}

// pushedBranch records the first indexed branch of a push, by name, and its new commit.
// It is nil if the push has none.
func pushedBranch(desired *catalogv1.Desired, root *catalogv1.Root, push codehost.Push, now time.Time) *catalogv1.Seen {
	for _, branch := range slices.Sorted(maps.Keys(push.Branches)) {
		commit := push.Branches[branch]
		indexed := origin.MatchBranch(desired.GetBranches(), branch) ||
			slices.ContainsFunc(root.GetBranches(), func(b *catalogv1.Branch) bool { return b.GetName() == branch })
		if indexed && isCommit(commit) {
			return &catalogv1.Seen{Branch: branch, Commit: commit, At: timestamppb.New(now), By: ingestv1.SeenBy_SEEN_BY_WEBHOOK}
		}
	}
	return nil
}

// isCommit reports whether the ID is one of a commit. Git hosts report a deleted branch
// with an ID of zeros.
func isCommit(id string) bool {
	raw, err := hex.DecodeString(id)
	return err == nil && (len(raw) == 20 || len(raw) == 32) && strings.Trim(id, "0") != ""
}

// changes reports whether a push can change what is indexed.
func changes(desired *catalogv1.Desired, root *catalogv1.Root, push codehost.Push) bool {
	if root == nil || root.GetEpoch() < desired.GetEpoch() || len(push.Branches) == 0 {
		return true
	}
	for branch, commit := range push.Branches {
		at := slices.IndexFunc(root.GetBranches(), func(b *catalogv1.Branch) bool { return b.GetName() == branch })
		if at >= 0 && root.GetBranches()[at].GetCommit() != commit {
			return true
		}
		if at < 0 && origin.MatchBranch(desired.GetBranches(), branch) {
			return true
		}
	}
	return false
}
