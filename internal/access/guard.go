package access

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/trawl-search/trawl/internal/delivery"
	"github.com/trawl-search/trawl/internal/limits"
	"github.com/trawl-search/trawl/internal/searchapi"
	"github.com/trawl-search/trawl/internal/wait"
	ingestv1 "github.com/trawl-search/trawl/proto/trawl/ingest/v1"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
	webserverv1 "github.com/trawl-search/trawl/proto/zoekt/webserver/v1"
)

// Authenticator identifies the caller. The context is the call's, with the proofs of
// the connection, such as a certificate. It is safe for concurrent use.
type Authenticator interface {
	Authenticate(ctx context.Context, shown Text) (Principal, error)
}

// Limits bound the cost of callers before anything that they send is read.
type Limits struct {
	// Calls bounds the calls in progress of one caller, streams included. There is no
	// such limit if callers need not identify themselves.
	Calls int
	// Live overrides Calls by limits.CallerCalls; nil: nothing does.
	Live *limits.Live
	// Hosts are names by which callers over HTTP may address the server, in addition to
	// its IP addresses and localhost, if they need not identify themselves.
	Hosts []string
}

// Guard admits callers to a router. It decides by the headers of a call. It is safe
// for concurrent use.
type Guard struct {
	who     Authenticator
	limits  Limits
	calls   *calls
	refused *prometheus.CounterVec // by reason
	log     *slog.Logger
	// pages are the patterns of pages for people.
	pages http.ServeMux
	// unavailable is called with the method or path of each call that is refused as Unavailable.
	unavailable func(method string)
}

// AuthorizedAsOf is the trailer, and over HTTP the header, of answers to a Dated caller:
// the last time at which the caller was known to be authorized, in RFC 3339.
const AuthorizedAsOf = "trawl-authorized-as-of"

// The reasons of refusals, as their metric names them.
const (
	reasonUnauthenticated = "unauthenticated"
	reasonStale           = "stale"
	reasonScope           = "scope"
	reasonCalls           = "calls"
	reasonBrowser         = "browser"
)

// NewGuard makes a guard and registers its metric. Without an authenticator it treats
// every caller as Anyone.
func NewGuard(who Authenticator, bounds Limits, metrics prometheus.Registerer, log *slog.Logger) *Guard {
	refused := promauto.With(metrics).NewCounterVec(prometheus.CounterOpts{
		Name: "trawl_access_refused_total",
		Help: "Calls that were refused before their request was read, by reason: unauthenticated, stale, scope, calls or browser.",
	}, []string{"reason"})
	for _, reason := range []string{reasonUnauthenticated, reasonStale, reasonScope, reasonCalls, reasonBrowser} {
		refused.WithLabelValues(reason)
	}
	return &Guard{
		who: who, limits: bounds, calls: &calls{of: make(map[string]int)}, refused: refused, log: log, unavailable: func(string) {},
	}
}

// OnUnavailable makes the guard call f with the gRPC method or the HTTP path of each call
// that it refuses as Unavailable, through no fault of the caller. It must be called before
// the first call arrives.
func (g *Guard) OnUnavailable(f func(method string)) { g.unavailable = f }

// authorization is the metadata and the header in which a caller shows its token.
const authorization = "authorization"

// scopeOf is the scope that a method needs. Methods that are not listed here are for
// administrators.
func scopeOf(method string) Scope {
	switch service, _, _ := strings.Cut(strings.TrimPrefix(method, "/"), "/"); service {
	case searchv1.SearchService_ServiceDesc.ServiceName, webserverv1.WebserverService_ServiceDesc.ServiceName:
		return ScopeSearch
	case ingestv1.IngestService_ServiceDesc.ServiceName:
		return ScopeIngest
	}
	return ScopeAdmin
}

// Unary implements server.Gate.
func (g *Guard) Unary(ctx context.Context, req any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
	ctx, leave, err := g.enter(ctx, info.FullMethod, metadata.ValueFromIncomingContext(ctx, authorization), scopeOf(info.FullMethod))
	if err != nil {
		return nil, err
	}
	defer leave()
	if asOf := datedBy(ctx); asOf != "" {
		if err := grpc.SetTrailer(ctx, metadata.Pairs(AuthorizedAsOf, asOf)); err != nil {
			return nil, fmt.Errorf("send when the caller was authorized: %w", err)
		}
	}
	return next(ctx, req)
}

// recheck is how often a stream's caller is looked up again: a stream can outlast its
// token.
const recheck = time.Second

// Stream implements server.Gate.
func (g *Guard) Stream(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, next grpc.StreamHandler) error {
	shown, scope := metadata.ValueFromIncomingContext(stream.Context(), authorization), scopeOf(info.FullMethod)
	ctx, leave, err := g.enter(stream.Context(), info.FullMethod, shown, scope)
	if err != nil {
		return err
	}
	defer leave()
	asOf := datedBy(ctx)
	defer func() {
		if asOf != "" {
			stream.SetTrailer(metadata.Pairs(AuthorizedAsOf, asOf))
		}
	}()
	ctx, end := context.WithCancelCause(ctx)
	var checking sync.WaitGroup
	defer checking.Wait()
	defer end(nil)
	if g.who != nil {
		checking.Go(func() {
			if p := g.keepChecking(ctx, shown, scope, end); p != nil {
				asOf = cmp.Or(datedBy(With(ctx, p)), asOf)
			}
		})
	}
	s := known{stream, ctx}
	err = next(srv, s)
	if refused := s.refused(); refused != nil {
		return refused
	}
	return err
}

// keepChecking ends a stream whose caller is no longer admitted. It returns the caller
// as it was last admitted, or nil if it was not looked up.
func (g *Guard) keepChecking(ctx context.Context, shown []string, scope Scope, end context.CancelCauseFunc) (last Principal) {
	for wait.Sleep(ctx, recheck) {
		p, err := g.identify(ctx, shown, scope)
		if err != nil {
			end(err)
			return last
		}
		last = p
	}
	return last
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

// refused is the status that ended a running stream, or nil.
func (s known) refused() error {
	if cause := context.Cause(s.ctx); s.ServerStream.Context().Err() == nil && cause != nil {
		if _, ok := status.FromError(cause); ok {
			return cause
		}
	}
	return nil
}

// The paths of the HTTP interfaces, without pages: the prefix for searching, those for repos and
// for sources below it, and the path for coding agents.
const (
	searchPaths = "/api/"
	repoPaths   = "/api/v1/repos/"
	sourcePaths = "/api/v1/sources/"
	agentPath   = "/mcp"
)

// scopeOfPath is the scope that an HTTP path needs. Paths that are not listed here are for
// administrators.
func scopeOfPath(path string) Scope {
	switch {
	case strings.HasPrefix(path, repoPaths):
		return ScopeIngest
	case strings.HasPrefix(path, sourcePaths):
		return ScopeAdmin
	case strings.HasPrefix(path, searchPaths), path == agentPath:
		return ScopeSearch
	}
	return ScopeAdmin
}

// countedKey marks the context of a request over HTTP that is counted as a call of its
// caller. The gRPC call that the request becomes is not counted again.
type countedKey struct{}

// HTTP implements server.Gate.
func (g *Guard) HTTP(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if g.who == nil {
			if code, text := g.browserRefusal(r); code != 0 {
				g.refused.WithLabelValues(reasonBrowser).Inc()
				g.answer(w, r, code, status.New(codes.PermissionDenied, text))
				return
			}
		}
		scope, page := scopeOfPath(r.URL.Path), g.isPage(r)
		if page {
			scope = ScopeSearch
		}
		ctx, leave, err := g.enter(r.Context(), r.URL.Path, shownBy(r, page), scope)
		if status.Code(err) == codes.Unauthenticated && page {
			toLogin(w, r)
			return
		}
		if err != nil {
			g.refuse(w, r, err)
			return
		}
		defer leave()
		if asOf := datedBy(ctx); asOf != "" {
			w.Header()[http.CanonicalHeaderKey(AuthorizedAsOf)] = []string{asOf}
		}
		next.ServeHTTP(w, r.WithContext(context.WithValue(ctx, countedKey{}, g)))
	})
}

// refuse answers with an error.
func (g *Guard) refuse(w http.ResponseWriter, r *http.Request, err error) {
	code := http.StatusServiceUnavailable
	switch status.Code(err) {
	case codes.Unauthenticated:
		code = http.StatusUnauthorized
		w.Header().Set("WWW-Authenticate", `Bearer realm="trawl"`)
	case codes.PermissionDenied:
		code = http.StatusForbidden
	case codes.ResourceExhausted:
		code = http.StatusTooManyRequests
		w.Header().Set("Retry-After", strconv.Itoa(int(retryCalls.Seconds())))
	}
	g.answer(w, r, code, status.Convert(err))
}

// answer sends an error, and closes the connection, since the request was not read.
func (g *Guard) answer(w http.ResponseWriter, r *http.Request, code int, s *status.Status) {
	w.Header().Set("Connection", "close")
	if err := delivery.WriteError(w, code, s); err != nil {
		g.log.DebugContext(r.Context(), "send a refusal", "error", err) // the caller has gone
	}
}

// howTo tells a caller without valid credentials how to authenticate.
const howTo = "send a token as authorization: Bearer TOKEN; the command line takes it from $TRAWL_TOKEN or --token-file, " +
	"and an operator makes one by `trawl tokens create`"

// retryCalls is when a caller with too many calls in progress should try again.
const retryCalls = time.Second

// enter returns the context of a known caller with the scope, and counts its call
// until leave, and until its answers are read. Its error is a status that does not reveal the token.
func (g *Guard) enter(ctx context.Context, method string, shown []string, scope Scope) (_ context.Context, leave func(), err error) {
	if g.who == nil {
		return With(ctx, Anyone), func() {}, nil
	}
	p, err := g.identify(ctx, shown, scope)
	if err != nil {
		if status.Code(err) == codes.Unavailable {
			g.unavailable(method)
		}
		return nil, nil, err
	}
	if ctx.Value(countedKey{}) == g {
		return With(ctx, p), func() {}, nil
	}
	most := g.limits.Live.Whole(limits.CallerCalls, p.ID(), g.limits.Calls)
	if !g.calls.begin(p.ID(), most) {
		g.refused.WithLabelValues(reasonCalls).Inc()
		g.log.DebugContext(ctx, "call refused", "caller", p.Name(), "limit", "caller-calls")
		return nil, nil, searchapi.Overloaded(fmt.Sprintf(
			"%d calls of this token are in progress, which is the limit (caller-calls)", most), retryCalls)
	}
	leave = func() { g.calls.end(p.ID()) }
	if delivery.Hold(ctx, p.ID(), leave) {
		leave = func() {}
	}
	return With(ctx, p), leave, nil
}

// identify returns the caller if it has the scope. Its error is that of enter.
func (g *Guard) identify(ctx context.Context, shown []string, scope Scope) (Principal, error) {
	text, err := bearer(shown)
	if err != nil {
		g.refused.WithLabelValues(reasonUnauthenticated).Inc()
		return nil, status.Errorf(codes.Unauthenticated, "%v: %s", err, howTo)
	}
	p, err := g.who.Authenticate(ctx, text)
	if _, dated := p.(Dated); dated && scope != ScopeSearch {
		err = ErrStale
	}
	switch {
	case errors.Is(err, ErrStale):
		g.refused.WithLabelValues(reasonStale).Inc()
		return nil, status.Error(codes.Unavailable, err.Error())
	case err != nil:
		g.refused.WithLabelValues(reasonUnauthenticated).Inc()
		g.log.DebugContext(ctx, "caller refused", "error", err)
		return nil, status.Errorf(codes.Unauthenticated, "the token was refused, %v: %s", err, howTo)
	case !p.May(scope):
		g.refused.WithLabelValues(reasonScope).Inc()
		return nil, status.Errorf(codes.PermissionDenied, "%s does not have the scope %s", p.Name(), scope)
	}
	return p, nil
}

// datedBy is the value of AuthorizedAsOf for the caller of a context, empty unless the
// caller is a Dated.
func datedBy(ctx context.Context) string {
	p, err := From(ctx)
	if dated, ok := p.(Dated); err == nil && ok {
		return dated.AsOf.UTC().Format(time.RFC3339)
	}
	return ""
}

// bearer extracts the token from the authorization of a caller.
func bearer(shown []string) (Text, error) {
	switch len(shown) {
	case 0:
		return "", errors.New("want a token, got none")
	case 1:
	default:
		return "", fmt.Errorf("want one token, got %d", len(shown))
	}
	scheme, text, ok := strings.Cut(shown[0], " ")
	if !ok || !strings.EqualFold(scheme, "bearer") {
		return "", errors.New("the authorization is not of the form Bearer TOKEN")
	}
	return Text(strings.TrimSpace(text)), nil
}
