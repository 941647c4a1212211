package ingest

import (
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
	"sync"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/trawl-search/trawl/internal/catalog"
	"github.com/trawl-search/trawl/internal/codehost"
	"github.com/trawl-search/trawl/internal/config"
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
	// maxAtOnce bounds the webhooks that are handled, and held in memory, at once;
	// maxOfSource those of one source, so that its senders leave room for others.
	maxAtOnce   = 64
	maxOfSource = 8
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
	slots    slots
}

// NewWebhooks returns a handler. The sources are those of the store; it does not close them. It
// requests the indexing of one repo at most once in the time apart.
func NewWebhooks(store *catalog.Store, sources *catalog.SourceView, jobs queue.Publisher, secrets codehost.Secrets, apart time.Duration, metrics *WebhookMetrics, log *slog.Logger) *Webhooks {
	return &Webhooks{
		store: store, sources: sources, jobs: jobs, secrets: secrets, apart: apart, metrics: metrics, log: log, patience: patience,
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
		h.log.WarnContext(ctx, "could not handle a webhook", "source", r.PathValue("source"), "outcome", done.name, "error", err)
	}
	h.metrics.count(done)
	http.Error(w, done.text, done.status)
}

// receive admits a webhook by cheap checks: its source, its header, and a free slot. Only
// then does it read the body, which may arrive slowly or never.
func (h *Webhooks) receive(ctx context.Context, w http.ResponseWriter, r *http.Request) (outcome, error) {
	name := r.PathValue("source")
	source, secret, done, err := h.source(name)
	if err == nil && done.name == "" && codehost.CheckHookHeader(source, r.Header, secret) != nil {
		done = forged
	}
	if err == nil && done.name == "" && !h.slots.enter(name) {
		done, err = failed, errors.New("too many webhooks at once")
	}
	if err != nil || done.name != "" {
		w.Header().Set("Connection", "close") // the server would read the body
		return done, err
	}
	defer h.slots.leave(name)
	body, done, err := h.read(w, r)
	if err != nil {
		return done, err
	}
	push, err := codehost.ReadHook(source, r.Header, body, secret)
	switch {
	case errors.Is(err, codehost.ErrForged):
		return forged, nil
	case err != nil:
		return ignored, nil //nolint:nilerr // it reports no push
	}
	return h.handle(ctx, name, push)
}

// source returns a source and the secret of its webhooks. An error goes to the log only;
// the response does not reveal it.
func (h *Webhooks) source(name string) (source *ingestv1.Source, secret config.Secret, end outcome, err error) {
	source, err = h.sources.Get(name)
	switch {
	case errors.Is(err, catalog.ErrNotFound):
		return nil, "", forged, nil
	case err != nil:
		return nil, "", failed, err
	}
	if secret, err = h.secrets.Get(source.GetWebhookSecret()); err != nil {
		return nil, "", forged, err
	}
	return source, secret, outcome{}, nil
}

// read reads the body, in bounded size and time.
func (h *Webhooks) read(w http.ResponseWriter, r *http.Request) ([]byte, outcome, error) {
	conn := http.NewResponseController(w)
	if err := conn.SetReadDeadline(time.Now().Add(h.patience)); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return nil, failed, fmt.Errorf("limit the time of a webhook: %w", err)
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if _, large := errors.AsType[*http.MaxBytesError](err); large {
		return nil, tooLarge, err
	}
	if err != nil {
		return nil, tooSlow, fmt.Errorf("read a webhook: %w", err)
	}
	// The server notices by reading that the sender has gone, so that read must not time
	// out.
	if err := conn.SetReadDeadline(time.Time{}); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return nil, failed, fmt.Errorf("limit the time of a webhook: %w", err)
	}
	return body, outcome{}, nil
}

// slots bound the webhooks that are handled at once, of each source and in all. The zero
// value is ready. They are safe for concurrent use.
type slots struct {
	mu  sync.Mutex
	all int
	of  map[string]int
}

// enter takes a slot, which the caller gives back by leave, unless there is none.
func (s *slots) enter(source string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all >= maxAtOnce || s.of[source] >= maxOfSource {
		return false
	}
	if s.of == nil {
		s.of = map[string]int{}
	}
	s.all++
	s.of[source]++
	return true
}

func (s *slots) leave(source string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all--
	if s.of[source]--; s.of[source] == 0 {
		delete(s.of, source)
	}
}

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
