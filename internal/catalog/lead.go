package catalog

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"

	"github.com/trawl-search/trawl/internal/wait"
)

// leadRetry bounds the wait before this process is a candidate again after etcd broke
// off its candidacy.
const leadRetry = time.Second

// Lead runs duty in one of all processes that call it with the same name, until ctx
// ends. The context of duty ends with the leadership, and duty must return then; it
// runs again when this process leads again. When a leader dies another one leads ttl
// later; when its ctx ends, at once. A leader that is cut off may not have noticed
// yet that another one leads, so two processes may run duty at the same time.
func (s *Store) Lead(ctx context.Context, name string, ttl time.Duration, log *slog.Logger, duty func(context.Context)) {
	for ctx.Err() == nil {
		if err := s.lead(ctx, name, ttl, duty); err != nil && ctx.Err() == nil {
			log.WarnContext(ctx, "cannot take part in the election, trying again", "election", name, "error", err)
		}
		wait.Sleep(ctx, wait.Half(leadRetry))
	}
}

// lead is one candidacy, with the leadership that may follow.
func (s *Store) lead(ctx context.Context, name string, ttl time.Duration, duty func(context.Context)) error {
	seconds := max(int(ttl/time.Second), 1)
	grant, err := s.client.Grant(ctx, int64(seconds))
	if err != nil {
		return fmt.Errorf("lease a candidacy: %w", err)
	}
	// The end of ctx must not keep the leadership from being given back.
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	session, err := concurrency.NewSession(s.client,
		concurrency.WithLease(grant.ID), concurrency.WithTTL(seconds), concurrency.WithContext(life))
	if err != nil {
		return fmt.Errorf("keep a candidacy: %w", err)
	}
	defer s.resign(life, session, grant.ID)
	leading, stop := context.WithCancel(ctx)
	defer stop()
	defer context.AfterFunc(session.Ctx(), stop)()
	election := concurrency.NewElection(session, s.key(electionKind, name))
	if err := election.Campaign(leading, ""); err != nil {
		return fmt.Errorf("campaign: %w", err)
	}
	duty(leading)
	return nil
}

// resign lets the next candidate lead at once, if etcd can be reached.
func (s *Store) resign(ctx context.Context, session *concurrency.Session, id clientv3.LeaseID) {
	session.Orphan()
	ctx, cancel := context.WithTimeout(ctx, revokeTimeout)
	defer cancel()
	_, _ = s.client.Revoke(ctx, id) // else the lease ends by itself
}
