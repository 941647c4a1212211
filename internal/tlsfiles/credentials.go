package tlsfiles

import (
	"context"
	"net"

	"google.golang.org/grpc/credentials"
)

// Credentials are for gRPC connections; each handshake uses the files of its time.
func (c *Client) Credentials() credentials.TransportCredentials {
	return fresh{credentials.NewTLS(c.Config()), c}
}

// fresh are credentials that are made anew for each handshake: gRPC's own keep the CAs
// that they were made with.
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
