package access

import (
	"context"
	"errors"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"
)

// ErrPlainText means that a token was kept back: the connection is not encrypted, and it
// is not known to end on this machine.
var ErrPlainText = errors.New("a token is not sent in plain text to another machine")

// plainText is the type of connections that were made with insecure.NewCredentials.
const plainText = "insecure"

// GetRequestMetadata implements credentials.PerRPCCredentials. It fails unless the
// connection was made with TLS, or with grpc's local credentials, which connect to
// loopback addresses and sockets only.
func (t Text) GetRequestMetadata(ctx context.Context, _ ...string) (map[string]string, error) {
	info, _ := credentials.RequestInfoFromContext(ctx)
	if info.AuthInfo == nil || info.AuthInfo.AuthType() == plainText {
		return nil, status.Error(codes.Unauthenticated, ErrPlainText.Error())
	}
	return t.metadata(), nil
}

// RequireTransportSecurity implements credentials.PerRPCCredentials. gRPC counts
// connections within a machine as insecure, so GetRequestMetadata checks the connection
// itself.
func (Text) RequireTransportSecurity() bool { return false }

func (t Text) metadata() map[string]string {
	return map[string]string{authorization: "Bearer " + string(t)}
}

// Exposed is a token that is sent over any connection, for networks that are encrypted by
// other means. It is formatted as "[redacted]", whatever the format.
type Exposed struct{ Text }

// GetRequestMetadata implements credentials.PerRPCCredentials.
func (t Exposed) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	return t.metadata(), nil
}
