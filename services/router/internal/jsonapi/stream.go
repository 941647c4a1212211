package jsonapi

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/trawl-search/trawl/internal/server"
)

// heartbeat is the longest silence of a stream. Proxies close idle connections.
const heartbeat = 15 * time.Second

// The names of events.
const (
	// eventResult is a message of the stream.
	eventResult = "result"
	// eventEnd is the last message, which has the coverage.
	eventEnd = "end"
	// eventError is a google.rpc.Status. Nothing follows it.
	eventError = "error"
)

// stream answers with the messages of a call as server-sent events. A call that fails before
// its first message is answered as any other error.
func (h *Handler) stream(ctx context.Context, w http.ResponseWriter, r *http.Request, route *route, req proto.Message) {
	var receiving sync.WaitGroup
	defer receiving.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	gone := make(chan struct{})
	defer close(gone)
	messages, ended := make(chan proto.Message), make(chan error, 1)
	receiving.Go(func() { ended <- h.receive(ctx, route, req, messages, gone) })
	beat := time.NewTicker(heartbeat)
	defer beat.Stop()
	out := &events{w: w, conn: http.NewResponseController(w)}
	for {
		var err error
		select {
		case m := <-messages:
			err = out.send(eventOf(m), m)
		case end := <-ended:
			switch {
			case errors.Is(end, io.EOF):
			case !out.begun:
				h.fail(w, r, end)
			default:
				_, s := problemOf(end)
				_ = out.send(eventError, written(s)) // nothing else is left to say
			}
			return
		case <-beat.C:
			err = out.write(": heartbeat\n\n") // a comment, which clients ignore
		}
		if r.Method == http.MethodHead {
			return // it has the header, and nobody sees more
		}
		if err != nil {
			h.log.DebugContext(ctx, "send an event", "path", r.URL.Path, "error", err)
			return
		}
	}
}

// receive makes the call, passes on its messages until the caller is gone, and returns the error that ends it. The message with
// the account may come after the deadline.
func (h *Handler) receive(ctx context.Context, route *route, req proto.Message, to chan<- proto.Message, gone <-chan struct{}) error {
	pass := func(m proto.Message) error {
		select {
		case to <- m:
			return nil
		case <-gone:
			return status.FromContextError(context.Canceled).Err()
		}
	}
	stream, err := h.conn.NewStream(ctx, route.stream, route.call, server.To(pass))
	if err == nil {
		err = stream.SendMsg(req)
	}
	if err == nil {
		err = stream.CloseSend() // a server of this process passes its messages meanwhile
	}
	for err == nil {
		m := route.out.New().Interface()
		if err = stream.RecvMsg(m); err == nil {
			err = pass(m)
		}
	}
	return err
}

// eventOf is the name of the event of a message. The last one of a search or a list is the
// only one with a coverage.
func eventOf(m proto.Message) string {
	reflected := m.ProtoReflect()
	if coverage := reflected.Descriptor().Fields().ByName("coverage"); coverage != nil && reflected.Has(coverage) {
		return eventEnd
	}
	return eventResult
}

// events writes server-sent events, and flushes each of them.
type events struct {
	w     http.ResponseWriter
	conn  *http.ResponseController
	begun bool
}

func (e *events) send(name string, m proto.Message) error {
	addTexts(m)
	data, err := encode(m)
	if err != nil {
		return fmt.Errorf("encode an event: %w", err)
	}
	return e.write("event: %s\ndata: %s\n\n", name, data)
}

func (e *events) write(format string, args ...any) error {
	if !e.begun {
		e.begun = true
		header := e.w.Header()
		header.Set("Content-Type", "text/event-stream")
		header.Set("Cache-Control", "no-store")
		header.Set("X-Accel-Buffering", "no") // nginx would hold events back
	}
	if _, err := fmt.Fprintf(e.w, format, args...); err != nil {
		return err
	}
	return e.conn.Flush()
}
