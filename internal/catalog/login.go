package catalog

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// Login is a user of etcd.
type Login struct {
	Username string
	// Password returns the current password. It is called whenever a session begins, so
	// that a new password needs no restart. It is safe for concurrent use.
	Password func() (string, error)
}

// sessions log a client in, and again when etcd has forgotten it. etcd's own client does so
// too, but waits for etcd when it is made, and keeps its first password.
type sessions struct {
	login   Login
	current atomic.Pointer[session]
	turn    chan struct{} // held by the caller that logs in
}

// session identifies a client to etcd. Its token is empty while etcd does not
// authenticate clients.
type session struct{ token string }

func (s *sessions) unary(ctx context.Context, method string, req, reply any, conn *grpc.ClientConn, next grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	if method == etcdserverpb.Auth_Authenticate_FullMethodName {
		return next(ctx, method, req, reply, conn, opts...)
	}
	known, err := s.get(ctx, conn, nil)
	if err != nil {
		return err
	}
	err = next(known.with(ctx), method, req, reply, conn, opts...)
	if !isForgotten(err) {
		return err
	}
	// etcd has done nothing.
	if known, err = s.get(ctx, conn, known); err != nil {
		return err
	}
	return next(known.with(ctx), method, req, reply, conn, opts...)
}

// stream begins a session of its own, since a stream may use it long after others ended.
// While etcd and the password file do not agree, as in the middle of a change, it uses
// the present session.
func (s *sessions) stream(ctx context.Context, desc *grpc.StreamDesc, conn *grpc.ClientConn, method string, next grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	before := s.current.Load()
	known, err := s.get(ctx, conn, before)
	if err != nil && before == nil {
		return nil, err
	}
	if err != nil {
		known = before
	}
	return next(known.with(ctx), desc, conn, method, opts...)
}

// get returns a session other than the one that is over.
func (s *sessions) get(ctx context.Context, conn *grpc.ClientConn, over *session) (*session, error) {
	if known := s.current.Load(); known != nil && known != over {
		return known, nil
	}
	select {
	case s.turn <- struct{}{}:
		defer func() { <-s.turn }()
	case <-ctx.Done():
		return nil, status.FromContextError(ctx.Err()).Err()
	}
	if known := s.current.Load(); known != nil && known != over {
		return known, nil
	}
	known, err := s.begin(ctx, conn)
	if err != nil {
		return nil, err
	}
	s.current.Store(known)
	return known, nil
}

// begin logs in. Its error is a status, without the password.
func (s *sessions) begin(ctx context.Context, conn *grpc.ClientConn) (*session, error) {
	password, err := s.login.Password()
	if err != nil {
		return nil, status.Error(codes.Unauthenticated, fmt.Sprintf("log in to etcd as %q: %v", s.login.Username, err))
	}
	resp, err := etcdserverpb.NewAuthClient(conn).Authenticate(ctx, &etcdserverpb.AuthenticateRequest{Name: s.login.Username, Password: password})
	switch {
	case errors.Is(rpctypes.Error(err), rpctypes.ErrAuthNotEnabled):
		return &session{}, nil
	case err != nil:
		return nil, status.Error(status.Code(err), fmt.Sprintf("log in to etcd as %q: %s", s.login.Username, status.Convert(err).Message()))
	}
	return &session{token: resp.GetToken()}, nil
}

func (s *session) with(ctx context.Context) context.Context {
	if s.token == "" {
		return ctx
	}
	return metadata.AppendToOutgoingContext(ctx, rpctypes.TokenFieldNameGRPC, s.token)
}

// isForgotten reports whether etcd refused a call because it does not know the session,
// or its users have changed.
func isForgotten(err error) bool {
	err = rpctypes.Error(err)
	return errors.Is(err, rpctypes.ErrInvalidAuthToken) || errors.Is(err, rpctypes.ErrAuthOldRevision) || errors.Is(err, rpctypes.ErrUserEmpty)
}
