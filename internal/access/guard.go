package access

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	ingestv1 "github.com/trawl-search/trawl/proto/trawl/ingest/v1"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

// Authenticator identifies the caller. The context is that of the call: what the
// connection proves, such as a certificate, is in it. It is safe for concurrent
// use.
type Authenticator interface {
	Authenticate(ctx context.Context, shown Text) (Principal, error)
}

// Guard lets in who may call a router. It is safe for concurrent use.
type Guard struct {
	who Authenticator
	log *slog.Logger
}

// NewGuard makes a guard. Without an authenticator it takes every caller for
// Anyone.
func NewGuard(who Authenticator, log *slog.Logger) *Guard { return &Guard{who, log} }

// authorization is the metadata and the header in which a caller shows its token.
const authorization = "authorization"

// scopeOf is the scope that a method needs. Methods that are not listed here are for
// administrators.
func scopeOf(method string) Scope {
	switch service, _, _ := strings.Cut(strings.TrimPrefix(method, "/"), "/"); service {
	case searchv1.SearchService_ServiceDesc.ServiceName:
		return ScopeSearch
	case ingestv1.IngestService_ServiceDesc.ServiceName:
		return ScopeIngest
	}
	return ScopeAdmin
}

// Unary implements server.Gate.
func (g *Guard) Unary(ctx context.Context, req any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
	ctx, err := g.enter(ctx, metadata.ValueFromIncomingContext(ctx, authorization), scopeOf(info.FullMethod))
	if err != nil {
		return nil, err
	}
	return next(ctx, req)
}

// recheck is how often a stream's caller is looked up again: a stream can be
// longer than the time that a token is good.
const recheck = time.Second

// Stream implements server.Gate.
func (g *Guard) Stream(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, next grpc.StreamHandler) error {
	shown, scope := metadata.ValueFromIncomingContext(stream.Context(), authorization), scopeOf(info.FullMethod)
	ctx, err := g.enter(stream.Context(), shown, scope)
	if err != nil {
		return err
	}
	ctx, end := context.WithCancelCause(ctx)
	var checking sync.WaitGroup
	defer checking.Wait()
	defer end(nil)
	if g.who != nil {
		checking.Go(func() { g.keepChecking(ctx, shown, scope, end) })
	}
	s := known{stream, ctx}
	err = next(srv, s)
	if refused := s.refused(); refused != nil {
		return refused
	}
	return err
}

// keepChecking ends a stream whose caller is no longer let in.
func (g *Guard) keepChecking(ctx context.Context, shown []string, scope Scope, end context.CancelCauseFunc) {
	tick := time.NewTicker(recheck)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			if _, err := g.enter(ctx, shown, scope); err != nil {
				end(err)
				return
			}
		case <-ctx.Done():
			return
		}
	}
}

// known is a stream whose caller is known.
type known struct {
	grpc.ServerStream

	ctx context.Context //nolint:containedctx // it is the stream's
}

// Context implements grpc.ServerStream.
func (s known) Context() context.Context { return s.ctx }

// SendMsg implements grpc.ServerStream. It sends nothing more to a caller that has been
// refused since the stream started.
func (s known) SendMsg(m any) error {
	if err := s.refused(); err != nil {
		return err
	}
	return s.ServerStream.SendMsg(m)
}

// refused is the status by which a running stream is ended, or nil.
func (s known) refused() error {
	if cause := context.Cause(s.ctx); s.ServerStream.Context().Err() == nil && cause != nil {
		if _, ok := status.FromError(cause); ok {
			return cause
		}
	}
	return nil
}

// searchPaths is where the HTTP interfaces for searching are.
const searchPaths = "/api/"

// HTTP implements server.Gate.
func (g *Guard) HTTP(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		scope := ScopeAdmin
		if strings.HasPrefix(r.URL.Path, searchPaths) {
			scope = ScopeSearch
		}
		ctx, err := g.enter(r.Context(), r.Header.Values("Authorization"), scope)
		if err != nil {
			g.refuse(w, r, err)
			return
		}
		next.ServeHTTP(w, r.WithContext(ctx))
	})
}

// refuse answers with an error in the form of the interfaces below /api/.
func (g *Guard) refuse(w http.ResponseWriter, r *http.Request, err error) {
	code := http.StatusServiceUnavailable
	switch status.Code(err) {
	case codes.Unauthenticated:
		code = http.StatusUnauthorized
		w.Header().Set("WWW-Authenticate", `Bearer realm="trawl"`)
	case codes.PermissionDenied:
		code = http.StatusForbidden
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	if err := json.NewEncoder(w).Encode(struct{ Error string }{status.Convert(err).Message()}); err != nil {
		g.log.DebugContext(r.Context(), "send a refusal", "error", err) // the caller has gone
	}
}

// howTo says what a caller must do who showed nothing, or not the right thing.
const howTo = "send a token as authorization: Bearer TOKEN; the command line takes it from $TRAWL_TOKEN or --token-file, " +
	"and an operator makes one by `trawl tokens create`"

// enter returns the context of a caller that is known and may do what it wants.
// Its error is a status that does not reveal the token.
func (g *Guard) enter(ctx context.Context, shown []string, scope Scope) (context.Context, error) {
	if g.who == nil {
		return With(ctx, Anyone), nil
	}
	text, err := bearer(shown)
	if err != nil {
		return nil, status.Errorf(codes.Unauthenticated, "%v: %s", err, howTo)
	}
	p, err := g.who.Authenticate(ctx, text)
	switch {
	case errors.Is(err, ErrStale):
		return nil, status.Error(codes.Unavailable, err.Error())
	case err != nil:
		g.log.DebugContext(ctx, "caller refused", "error", err)
		return nil, status.Errorf(codes.Unauthenticated, "the token was refused, %v: %s", err, howTo)
	case !p.May(scope):
		return nil, status.Errorf(codes.PermissionDenied, "%s has not the scope %s", p.Name(), scope)
	}
	return With(ctx, p), nil
}

// bearer finds the token in what a caller shows of itself.
func bearer(shown []string) (Text, error) {
	if len(shown) != 1 {
		return "", fmt.Errorf("one token is needed, %d came", len(shown))
	}
	scheme, text, ok := strings.Cut(shown[0], " ")
	if !ok || !strings.EqualFold(scheme, "bearer") {
		return "", errors.New("the authorization is no Bearer token")
	}
	return Text(strings.TrimSpace(text)), nil
}
