package access

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

// A seal is, in the metadata of a call from a router to a searcher:
//
//	expiry     8 bytes, milliseconds since 1970, big endian
//	signature  32 bytes, HMAC-SHA-256 with the key of plans over
//	           "trawl plan 1\0", the method, a zero byte, expiry, and the request
//	           in the protocol buffers' encoding, fields in order of number
//
// The request holds the plan and the query, so a seal is valid for one query, its
// shards and repos, and a limited time.
const (
	sealKey     = "trawl-seal-bin"
	sealDomain  = "trawl plan 1\x00"
	expiryBytes = 8
	sealBytes   = expiryBytes + sha256.Size
)

// sealLife is how long a seal is valid: longer than any query, and longer than the
// clocks of a cluster differ.
const sealLife = 2 * time.Minute

// errSeal means that no router of this cluster made the request, that it was changed
// since, or that its time is over.
var errSeal = errors.New("searchers answer the routers of their cluster only")

// sign computes the signature of a request.
func sign(key []byte, method string, expiry [expiryBytes]byte, req proto.Message) ([]byte, error) {
	raw, err := proto.MarshalOptions{Deterministic: true}.Marshal(req)
	if err != nil {
		return nil, fmt.Errorf("encode request: %w", err)
	}
	h := hmac.New(sha256.New, key)
	h.Write([]byte(sealDomain))
	h.Write([]byte(method))
	h.Write([]byte{0})
	h.Write(expiry[:])
	h.Write(raw)
	return h.Sum(nil), nil
}

// seal makes the seal of a request.
func seal(key []byte, method string, until time.Time, req proto.Message) (string, error) {
	var expiry [expiryBytes]byte
	binary.BigEndian.PutUint64(expiry[:], uint64(until.UnixMilli()))
	signature, err := sign(key, method, expiry, req)
	return string(expiry[:]) + string(signature), err
}

// check returns an error unless a request came with one valid seal.
func check(key []byte, method string, now time.Time, req proto.Message, seals []string) error {
	if len(seals) != 1 || len(seals[0]) != sealBytes {
		return fmt.Errorf("%w: this request has no seal", errSeal)
	}
	expiry := [expiryBytes]byte([]byte(seals[0][:expiryBytes]))
	want, err := sign(key, method, expiry, req)
	if err != nil {
		return err
	}
	if !hmac.Equal(want, []byte(seals[0][expiryBytes:])) {
		return fmt.Errorf("%w: the seal is not that of this request", errSeal)
	}
	if until := time.UnixMilli(int64(binary.BigEndian.Uint64(expiry[:]))); !now.Before(until) {
		return fmt.Errorf("%w: the seal was good until %s; do the clocks differ?", errSeal, until.UTC().Format(time.RFC3339))
	}
	return nil
}

// Sealer seals a router's requests to searchers.
type Sealer struct{ Key *Key }

// Unary is the interceptor of a router's connections for calls with one answer.
func (s Sealer) Unary(ctx context.Context, method string, req, reply any, conn *grpc.ClientConn, call grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	ctx, err := s.seal(ctx, method, req)
	if err != nil {
		return err
	}
	return call(ctx, method, req, reply, conn, opts...)
}

// seal puts the seal of a request into the metadata; calls of other services have none.
func (s Sealer) seal(ctx context.Context, method string, req any) (context.Context, error) {
	msg, ok := req.(proto.Message)
	if !ok || !sealable(method) {
		return ctx, nil
	}
	key := s.Key.get()
	if key == nil {
		return nil, status.Error(codes.Unavailable, "there is no key to seal plans with yet")
	}
	sealed, err := seal(key, method, time.Now().Add(sealLife), msg)
	if err != nil {
		return nil, err
	}
	return metadata.AppendToOutgoingContext(ctx, sealKey, sealed), nil
}

func sealable(method string) bool {
	return strings.HasPrefix(method, "/"+searchv1.SearchService_ServiceDesc.ServiceName+"/")
}

// Checker is the gate of a searcher: it admits sealed requests only.
type Checker struct{ Key *Key }

// Unary implements server.Gate.
func (c Checker) Unary(ctx context.Context, req any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
	if err := c.check(ctx, info.FullMethod, req); err != nil {
		return nil, err
	}
	return next(ctx, req)
}

// Stream implements server.Gate: each message that comes in must be sealed by
// the one seal of the stream.
func (c Checker) Stream(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, next grpc.StreamHandler) error {
	return next(srv, checked{stream, c, info.FullMethod})
}

type checked struct {
	grpc.ServerStream

	by     Checker
	method string
}

// RecvMsg implements grpc.ServerStream.
func (s checked) RecvMsg(m any) error {
	if err := s.ServerStream.RecvMsg(m); err != nil {
		return err
	}
	return s.by.check(s.Context(), s.method, m)
}

// HTTP implements server.Gate: there is nothing for callers here.
func (Checker) HTTP(http.Handler) http.Handler { return http.NotFoundHandler() }

func (c Checker) check(ctx context.Context, method string, req any) error {
	msg, ok := req.(proto.Message)
	key := c.Key.get()
	switch {
	case !ok:
		return status.Error(codes.Unauthenticated, errSeal.Error())
	case key == nil:
		return status.Error(codes.Unavailable, "there is no key to check seals with yet")
	}
	if err := check(key, method, time.Now(), msg, metadata.ValueFromIncomingContext(ctx, sealKey)); err != nil {
		return status.Error(codes.Unauthenticated, err.Error())
	}
	return nil
}
