package catalog

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// spaceTimeout bounds the question to one member of etcd. The others do not wait for it.
const spaceTimeout = 2 * time.Second

// Space is how much of its space a member of etcd has used, in bytes. Beyond the quota etcd refuses
// everything but deletions.
type Space struct{ Used, Quota int64 }

// Share is the part of the quota that is used; 0 if the quota is unknown, as before etcd 3.6.
func (s Space) Share() float64 {
	if s.Quota <= 0 {
		return 0
	}
	return float64(s.Used) / float64(s.Quota)
}

// Space asks all members of etcd at once, and returns that of the fullest of those that answer within two seconds. It
// fails if none does.
func (s *Store) Space(ctx context.Context) (fullest Space, err error) {
	ctx, cancel := context.WithTimeout(ctx, spaceTimeout)
	defer cancel()
	endpoints := s.client.Endpoints()
	spaces, errs := make([]Space, len(endpoints)), make([]error, len(endpoints))
	var asking sync.WaitGroup
	for i, endpoint := range endpoints {
		asking.Go(func() {
			status, err := s.client.Status(ctx, endpoint)
			if err != nil {
				errs[i] = err
				return
			}
			spaces[i] = Space{status.DbSize, status.DbSizeQuota}
		})
	}
	asking.Wait()
	answered := false
	for i, is := range spaces {
		if errs[i] == nil && (!answered || is.Share() > fullest.Share()) {
			fullest, answered = is, true
		}
	}
	if !answered {
		return Space{}, fmt.Errorf("ask etcd for its size: %w", errors.Join(errs...))
	}
	return fullest, nil
}
