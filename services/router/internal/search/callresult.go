package search

import (
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
)

// callResult records how a call to a searcher ended. It separates errors of the
// connection from errors that the searcher sent: gRPC gives both the same codes.
type callResult struct {
	searcher        string // ID of the searcher
	header, trailer metadata.MD
	peer            peer.Peer
	// started is set when the first part of a streamed reply has arrived. An error
	// after it is not the searcher's own.
	started bool
}

// options make gRPC fill in the result.
func (r *callResult) options() []grpc.CallOption {
	return []grpc.CallOption{grpc.Header(&r.header), grpc.Trailer(&r.trailer), grpc.Peer(&r.peer)}
}

// answered reports whether the searcher itself ended the call.
func (r *callResult) answered() bool { return len(r.header)+len(r.trailer) > 0 }

// disconnected reports whether there was no connection, or it broke before the
// reply was complete.
func (r *callResult) disconnected(err error) bool {
	return status.Code(err) == codes.Unavailable && (r.started || !r.answered())
}

// diedWorking reports whether the connection broke while the searcher worked on
// the call. A searcher that has started to reply has done the work.
func (r *callResult) diedWorking(err error) bool {
	return r.disconnected(err) && !r.started && r.peer.Addr != nil
}
