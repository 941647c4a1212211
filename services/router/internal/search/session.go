package search

import (
	"context"
	"sync"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

// Session is the same service for calls that belong together: all of them are
// answered from the roots that the first one was, and from the repos that keep
// holds for; nil keeps all. It is safe for concurrent use and needs no closing,
// but must not outlive the answer that it is for: shards of old generations
// are dropped after a while.
func (s *Service) Session(keep func(repo string) bool) *Service {
	own := *s
	own.layouts = &session{from: s.layouts, keep: keep}
	return &own
}

// session gives one layout again and again.
type session struct {
	from Layouts
	keep func(repo string) bool

	mu     sync.Mutex
	layout *Layout
}

// At implements Layouts. Only the first call that succeeds can say how recent
// the roots must be; calls at the same time wait for it, as long as its caller
// does.
func (s *session) At(ctx context.Context, want *searchv1.Consistency, atLeast int64) (*Layout, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.layout != nil {
		return s.layout, nil
	}
	layout, err := s.from.At(ctx, want, atLeast)
	if err != nil {
		return nil, err
	}
	if s.keep != nil {
		if layout, err = layout.Only(s.keep); err != nil {
			return nil, status.Errorf(codes.DataLoss, "choose repos from the roots: %v", err)
		}
	}
	s.layout = layout
	return layout, nil
}
