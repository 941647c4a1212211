package search

import (
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
)

// hearing tells how a call to a searcher ended: gRPC gives the errors of the
// connection and those that the searcher sent the same codes.
type hearing struct {
	searcher        string // whose call it is
	header, trailer metadata.MD
	peer            peer.Peer
	// begun is set when a part of a streamed answer has come: what ends it early is not
	// the searcher's own doing then.
	begun bool
}

// options make the call tell.
func (h *hearing) options() []grpc.CallOption {
	return []grpc.CallOption{grpc.Header(&h.header), grpc.Trailer(&h.trailer), grpc.Peer(&h.peer)}
}

// answered says whether the end of the call is the searcher's own.
func (h *hearing) answered() bool { return len(h.header)+len(h.trailer) > 0 }

// disconnected says whether there was no connection, or it broke before an answer.
func (h *hearing) disconnected(err error) bool {
	return status.Code(err) == codes.Unavailable && (h.begun || !h.answered())
}

// cutOff says whether the connection broke while the searcher worked on the call. Once it
// sends its answer, the work is done.
func (h *hearing) cutOff(err error) bool {
	return h.disconnected(err) && !h.begun && h.peer.Addr != nil
}
