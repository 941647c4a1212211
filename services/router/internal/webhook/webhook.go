// Package webhook takes the webhooks by which Git hosts tell of pushes. Nothing that
// they say is believed but which repo was pushed to, and only if they are signed
// with the secret of the repo's source.
package webhook

import (
	"context"
	"encoding/hex"
	"errors"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/trawl-search/trawl/internal/catalog"
	"github.com/trawl-search/trawl/internal/codehost"
	"github.com/trawl-search/trawl/internal/gitsource/origin"
	"github.com/trawl-search/trawl/internal/queue"
	catalogv1 "github.com/trawl-search/trawl/proto/trawl/catalog/v1"
	ingestv1 "github.com/trawl-search/trawl/proto/trawl/ingest/v1"
)

// Pattern is where webhooks come in: each source has its own address.
const Pattern = "POST /hooks/{source}"

const (
	// maxBody bounds a webhook in bytes.
	maxBody = 4 << 20
	// maxAtOnce bounds how many are looked at, and held in memory, at once.
	maxAtOnce = 64
	// timeout bounds what one webhook may take.
	timeout = 10 * time.Second
	// wakeTimeout bounds waking an indexer, which may fail: the reconciler finds the
	// request in etcd.
	wakeTimeout = time.Second
)

// Jobs wakes indexers.
type Jobs interface {
	Publish(ctx context.Context, job queue.Job) error
}

// Handler takes webhooks. It is safe for concurrent use.
type Handler struct {
	store   *catalog.Store
	jobs    Jobs
	secrets codehost.Secrets
	apart   time.Duration
	metrics *Metrics
	log     *slog.Logger
	slots   chan struct{}
}

// New makes a handler. Requests for one repo are made at least apart.
func New(store *catalog.Store, jobs Jobs, secrets codehost.Secrets, apart time.Duration, metrics *Metrics, log *slog.Logger) *Handler {
	return &Handler{store, jobs, secrets, apart, metrics, log, make(chan struct{}, maxAtOnce)}
}

// outcome is what became of a webhook, with the status that its host is told.
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
	// forged is told of sources that are not there, too.
	forged   = outcome{"forged", http.StatusUnauthorized, "not signed with the secret of a source of this name"}
	tooLarge = outcome{"too_large", http.StatusRequestEntityTooLarge, "the webhook is too large"}
	failed   = outcome{"failed", http.StatusServiceUnavailable, "try again later"}
)

// outcomes are all of them, for counting.
var outcomes = []outcome{queued, merged, current, ignored, forged, tooLarge, failed}

// ServeHTTP implements http.Handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), timeout)
	defer cancel()
	done, err := h.take(ctx, w, r)
	if err != nil {
		h.log.WarnContext(ctx, "a webhook came to nothing", "source", r.PathValue("source"), "outcome", done.name, "error", err)
	}
	h.metrics.came(done)
	http.Error(w, done.text, done.status)
}

func (h *Handler) take(ctx context.Context, w http.ResponseWriter, r *http.Request) (outcome, error) {
	select {
	case h.slots <- struct{}{}:
		defer func() { <-h.slots }()
	default:
		return failed, errors.New("too many webhooks at once")
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		return tooLarge, err
	}
	name := r.PathValue("source")
	push, done, err := h.verify(ctx, name, r.Header, body)
	if err != nil || done.name != "" {
		return done, err
	}
	return h.handle(ctx, name, push)
}

// verify reads a webhook that is signed with the secret of its source. What a source
// is missing for it is told to the operator, and to nobody else.
func (h *Handler) verify(ctx context.Context, name string, header http.Header, body []byte) (push codehost.Push, end outcome, err error) {
	source, err := h.store.GetSource(ctx, name)
	switch {
	case errors.Is(err, catalog.ErrNotFound), err == nil && source.Record.GetRemoved():
		return push, forged, nil
	case err != nil:
		return push, failed, err
	}
	spec := source.Record.GetSpec()
	secret, err := h.secrets.Get(spec.GetWebhookSecret())
	if err != nil {
		return push, forged, err
	}
	push, err = codehost.ReadHook(spec, header, body, secret)
	switch {
	case errors.Is(err, codehost.ErrForged):
		return push, forged, nil
	case err != nil:
		return push, ignored, nil //nolint:nilerr // it tells of no push
	}
	return push, outcome{}, nil
}

// handle has the repo of a push indexed anew, unless nothing that is indexed has
// changed. The order of reading matters: what is asked for comes first, so that a
// root that answers it was made after this push if it holds its commits.
func (h *Handler) handle(ctx context.Context, source string, push codehost.Push) (outcome, error) {
	name, err := origin.RepoName(push.CloneURL)
	if err != nil {
		return ignored, nil //nolint:nilerr // it is of no repo
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
	if !worth(desired.Record, root.Record, push) {
		return current, nil
	}
	now := time.Now()
	epoch, _, err := h.store.Refresh(ctx, name, sight(desired.Record, root.Record, push, now), now, h.apart)
	switch {
	case errors.Is(err, catalog.ErrNotFound):
		return ignored, nil
	case err != nil:
		return failed, err
	case epoch == 0:
		return merged, nil
	}
	h.wake(ctx, queue.Job{Repo: name, Epoch: epoch})
	return queued, nil
}

func (h *Handler) wake(ctx context.Context, job queue.Job) {
	ctx, cancel := context.WithTimeout(ctx, wakeTimeout)
	defer cancel()
	if err := h.jobs.Publish(ctx, job); err != nil {
		h.log.WarnContext(ctx, "no indexer was woken; the reconciler will find the request", "repo", job.Repo, "epoch", job.Epoch, "error", err)
	}
}

// sight is what is noted of a push: the first branch of it that is indexed, by name,
// and where it is now; nil if that is not known.
func sight(desired *catalogv1.Desired, root *catalogv1.Root, push codehost.Push, now time.Time) *catalogv1.Seen {
	for _, branch := range slices.Sorted(maps.Keys(push.Branches)) {
		commit := push.Branches[branch]
		indexed := origin.MatchAny(desired.GetBranches(), branch) ||
			slices.ContainsFunc(root.GetBranches(), func(b *catalogv1.Branch) bool { return b.GetName() == branch })
		if indexed && isCommit(commit) {
			return &catalogv1.Seen{Branch: branch, Commit: commit, At: timestamppb.New(now), By: ingestv1.SeenBy_SEEN_BY_WEBHOOK}
		}
	}
	return nil
}

// isCommit says whether a branch is there: one that was deleted is said to be at
// zeros.
func isCommit(id string) bool {
	raw, err := hex.DecodeString(id)
	return err == nil && (len(raw) == 20 || len(raw) == 32) && strings.Trim(id, "0") != ""
}

// worth says whether a push can change what is searched.
func worth(desired *catalogv1.Desired, root *catalogv1.Root, push codehost.Push) bool {
	if root == nil || root.GetEpoch() < desired.GetEpoch() || len(push.Branches) == 0 {
		return true
	}
	for branch, commit := range push.Branches {
		at := slices.IndexFunc(root.GetBranches(), func(b *catalogv1.Branch) bool { return b.GetName() == branch })
		if at >= 0 && root.GetBranches()[at].GetCommit() != commit {
			return true
		}
		if at < 0 && origin.MatchAny(desired.GetBranches(), branch) {
			return true
		}
	}
	return false
}
