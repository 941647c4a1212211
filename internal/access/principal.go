package access

import (
	"context"
	"errors"
	"time"
)

// Scope is a kind of action that a caller may take, in the repos that it may see.
type Scope string

// Scopes. ScopeAdmin permits everything, including actions that need no other scope.
const (
	ScopeSearch Scope = "search"
	ScopeIngest Scope = "ingest"
	ScopeAdmin  Scope = "admin"
)

// Principal is an identified caller. Implementations are safe for concurrent use and
// never change.
type Principal interface {
	// ID distinguishes callers, for limits of each. It is empty for callers that need not
	// identify themselves.
	ID() string
	// Name is for logs and messages. It holds no secret.
	Name() string
	// May reports whether the caller has the scope.
	May(scope Scope) bool
	// Sees reports whether the caller may know that the repo exists.
	Sees(repo string) bool
	// VisibilityKey names the set of repos that Sees holds for: principals with equal
	// keys see the same repos. It is empty for principals that see all.
	VisibilityKey() string
}

// Anyone is the principal of all callers where access control is off. It may do
// everything.
var Anyone Principal = anyone{}

type anyone struct{}

func (anyone) ID() string            { return "" }
func (anyone) Name() string          { return "anyone" }
func (anyone) May(Scope) bool        { return true }
func (anyone) Sees(string) bool      { return true }
func (anyone) VisibilityKey() string { return "" }

// SeesAll reports whether the principal sees every repo, whatever its name.
func SeesAll(p Principal) bool { return p.VisibilityKey() == "" }

// Dated is a principal as it was known at AsOf; etcd has not answered since. It may have
// lost its rights meanwhile. It may only search.
type Dated struct {
	Principal

	AsOf time.Time
}

// ErrNobody means that a call passed every check without an identified caller. Such a
// call sees nothing.
var ErrNobody = errors.New("the caller is unknown")

type principalKey struct{}

// With returns a context that carries the principal.
func With(ctx context.Context, p Principal) context.Context {
	return context.WithValue(ctx, principalKey{}, p)
}

// From returns the principal of a call; ErrNobody if there is none.
func From(ctx context.Context) (Principal, error) {
	if p, ok := ctx.Value(principalKey{}).(Principal); ok {
		return p, nil
	}
	return nil, ErrNobody
}

// Sees reports whether the caller may know that the repo exists. An unknown caller
// may not.
func Sees(ctx context.Context, repo string) bool {
	p, err := From(ctx)
	return err == nil && p.Sees(repo)
}
