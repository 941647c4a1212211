package catalog

import (
	"context"
	"errors"
	"fmt"
)

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

// Space asks all members of etcd, and returns that of the fullest. It fails if none answers.
func (s *Store) Space(ctx context.Context) (fullest Space, err error) {
	answers, errs := 0, []error(nil)
	for _, endpoint := range s.client.Endpoints() {
		status, err := s.client.Status(ctx, endpoint)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		answers++
		if is := (Space{status.DbSize, status.DbSizeQuota}); answers == 1 || is.Share() > fullest.Share() {
			fullest = is
		}
	}
	if answers == 0 {
		return Space{}, fmt.Errorf("ask etcd for its size: %w", errors.Join(errs...))
	}
	return fullest, nil
}
