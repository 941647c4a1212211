package tlsfiles

import (
	"context"
	"net"

	"google.golang.org/grpc/credentials"
)

// Credentials are for gRPC connections. Each handshake uses the files as they are
// then.
func (c *Client) Credentials() credentials.TransportCredentials {
	return fresh{credentials.NewTLS(c.Config()), c}
}

// fresh are credentials that are made anew for each handshake, since gRPC's own keep
// their first CAs.
type fresh struct {
	credentials.TransportCredentials

	client *Client
}

// ClientHandshake implements credentials.TransportCredentials.
func (f fresh) ClientHandshake(ctx context.Context, authority string, raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	return credentials.NewTLS(f.client.Config()).ClientHandshake(ctx, authority, raw)
}

// Clone implements credentials.TransportCredentials.
func (f fresh) Clone() credentials.TransportCredentials { return f }
