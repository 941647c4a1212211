package mcptools

import (
	"context"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// lastReplies is how long a connection whose input has ended stays open for replies. Calls end within the router's deadlines, but one that the client
// has cancelled may never be replied to.
const lastReplies = time.Minute

// answering is a transport that ends only when the calls that it has read are replied to. The SDK drops their replies at the end of the input, so that
// programs that write all their calls at once would get none.
type answering struct{ mcp.Transport }

// Connect implements mcp.Transport.
func (t answering) Connect(ctx context.Context) (mcp.Connection, error) {
	conn, err := t.Transport.Connect(ctx)
	return &answeringConn{Connection: conn, closed: make(chan struct{}), replied: make(chan struct{}, 1)}, err
}

type answeringConn struct {
	mcp.Connection

	mu      sync.Mutex
	calls   int           // that are not replied to
	replied chan struct{} // has a value after each reply
	close   sync.Once
	closed  chan struct{}
}

// Read implements mcp.Connection.
func (c *answeringConn) Read(ctx context.Context) (jsonrpc.Message, error) {
	msg, err := c.Connection.Read(ctx)
	if err != nil {
		c.awaitReplies(ctx)
		return msg, err //nolint:wrapcheck // the SDK compares it with io.EOF
	}
	if r, ok := msg.(*jsonrpc.Request); ok && r.ID.IsValid() {
		c.add(1)
	}
	return msg, nil
}

// Write implements mcp.Connection.
func (c *answeringConn) Write(ctx context.Context, msg jsonrpc.Message) error {
	err := c.Connection.Write(ctx, msg)
	if _, ok := msg.(*jsonrpc.Response); ok {
		c.add(-1)
		select {
		case c.replied <- struct{}{}:
		default:
		}
	}
	return err //nolint:wrapcheck // as it is
}

// Close implements mcp.Connection.
func (c *answeringConn) Close() error {
	c.close.Do(func() { close(c.closed) })
	return c.Connection.Close() //nolint:wrapcheck // as it is
}

// add adds to the calls, and returns how many there are.
func (c *answeringConn) add(n int) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls += n
	return c.calls
}

func (c *answeringConn) awaitReplies(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, lastReplies)
	defer cancel()
	for c.add(0) > 0 {
		select {
		case <-c.replied:
		case <-c.closed:
			return
		case <-ctx.Done():
			return
		}
	}
}
