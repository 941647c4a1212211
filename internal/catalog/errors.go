package catalog

import (
	"context"
	"errors"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/trawl-search/trawl/internal/catalog/follow"
)

// Errors that callers distinguish with errors.Is.
var (
	// ErrNotFound means there is no such record.
	ErrNotFound = errors.New("not found")
	// ErrNotDesired means the repo is not desired, or was deleted since the lease was taken.
	ErrNotDesired = errors.New("repo is not desired")
	// ErrLeased means another job holds the repo's lease.
	ErrLeased = errors.New("repo is leased by another job")
	// ErrLeaseLost means the lease ended before the change that it protects.
	ErrLeaseLost = errors.New("lease lost")
	// ErrStale means the record changed since it was read, or a newer one is there.
	ErrStale = errors.New("record is stale")
	// ErrGeneration means a root's generation or epoch would go back.
	ErrGeneration = errors.New("generation or epoch would go back")
	// ErrForeignObject means a root names an object of another job.
	ErrForeignObject = errors.New("object was not made under the lease")
	// ErrTooLarge means a record is over MaxRecordBytes or MaxDesiredBytes, or a name over MaxNameBytes.
	ErrTooLarge = errors.New("record is too large")
	// ErrName means a repo name is empty.
	ErrName = errors.New("repo name is empty")
	// ErrFuture means that etcd has not reached a revision yet, or never will.
	ErrFuture = errors.New("etcd has not reached the revision")
	// ErrAway means that etcd has not answered for longer than an election of its leader
	// takes.
	ErrAway = errors.New("etcd is away")
	// ErrWentBack means that etcd lacks what it had before.
	ErrWentBack = follow.ErrWentBack
	// ErrToken means a revision token was not made by EncodeToken.
	ErrToken = errors.New("revision token is not valid")
)

// isLeaseGone reports whether etcd no longer knows the lease.
func isLeaseGone(err error) bool { return errors.Is(err, rpctypes.ErrLeaseNotFound) }

// IsTransient reports whether the same operation may succeed later, because etcd
// cannot be reached or has no leader. It is then unknown whether a write was done.
func IsTransient(err error) bool {
	code := status.Code(err)
	if etcd := (rpctypes.EtcdError{}); errors.As(err, &etcd) {
		code = etcd.Code()
	}
	switch code {
	case codes.Unavailable, codes.DeadlineExceeded, codes.ResourceExhausted, codes.Aborted, codes.Internal:
		return true
	}
	return errors.Is(err, context.DeadlineExceeded)
}
