package access_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/credentials/local"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/trawl-search/trawl/internal/access"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

// listener is a search service that records the credentials of its callers.
type listener struct {
	searchv1.UnimplementedSearchServiceServer
	shown []string
}

func (l *listener) Search(ctx context.Context, _ *searchv1.SearchRequest) (*searchv1.SearchResponse, error) {
	l.shown = metadata.ValueFromIncomingContext(ctx, "authorization")
	return &searchv1.SearchResponse{}, nil
}

// TestTokensAreKeptBack: a token is sent over connections that are known to stay on
// this machine, and over others only as access.Exposed.
func TestTokensAreKeptBack(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	srv, there := grpc.NewServer(), &listener{}
	searchv1.RegisterSearchServiceServer(srv, there)
	done := make(chan error, 1)
	go func() { done <- srv.Serve(ln) }()
	defer func() {
		srv.Stop()
		if err := <-done; err != nil && !errors.Is(err, grpc.ErrServerStopped) {
			t.Error(err)
		}
	}()
	token := access.Text("trawl_a")
	for name, c := range map[string]struct {
		transport credentials.TransportCredentials
		shows     credentials.PerRPCCredentials
		sent      bool
	}{
		"anywhere":          {insecure.NewCredentials(), token, false},
		"on this machine":   {local.NewCredentials(), token, true},
		"anywhere, exposed": {insecure.NewCredentials(), access.Exposed{Text: token}, true},
	} {
		there.shown = nil
		conn, err := grpc.NewClient(ln.Addr().String(), grpc.WithTransportCredentials(c.transport), grpc.WithPerRPCCredentials(c.shows))
		if err != nil {
			t.Fatal(err)
		}
		_, err = searchv1.NewSearchServiceClient(conn).Search(t.Context(), &searchv1.SearchRequest{Query: "x"})
		conn.Close()
		if (err == nil) != c.sent || (there.shown != nil) != c.sent {
			t.Errorf("%s: %v, shown %q", name, err, there.shown)
		}
		if !c.sent && (status.Code(err) != codes.Unauthenticated || !strings.Contains(err.Error(), access.ErrPlainText.Error())) {
			t.Errorf("%s: %v", name, err)
		}
		if text := fmt.Sprintf("%v %+v %s", c.shows, c.shows, c.shows); strings.Contains(text, "trawl_a") {
			t.Errorf("%s: formatted as %s", name, text)
		}
	}
}
