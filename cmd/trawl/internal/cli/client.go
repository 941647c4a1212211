package cli

import (
	"context"
	"fmt"

	"github.com/spf13/pflag"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	ingestv1 "github.com/trawl-search/trawl/proto/trawl/ingest/v1"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

// defaultAddress is where `trawl up` serves gRPC unless told otherwise.
const defaultAddress = "127.0.0.1:7430"

// maxAnswer bounds one message from a router: 64 MiB of content and its frame.
const maxAnswer = 80 << 20

// addressFlag declares --addr, whose default may come from $TRAWL_ADDR.
func addressFlag(flags *pflag.FlagSet, p Process, addr *string) {
	standard := p.env("TRAWL_ADDR")
	if standard == "" {
		standard = defaultAddress
	}
	flags.StringVar(addr, "addr", standard, "host:port of a router, or $TRAWL_ADDR")
}

// client calls a router.
type client struct {
	conn   *grpc.ClientConn
	search searchv1.SearchServiceClient
	ingest ingestv1.IngestServiceClient
}

// withClient runs f with a client of the router at addr.
func withClient(ctx context.Context, addr string, f func(context.Context, client) error) error {
	conn, err := grpc.NewClient(addr,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithNoProxy(),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxAnswer)),
	)
	if err != nil {
		return fmt.Errorf("connecting to %s: %w", addr, err)
	}
	defer conn.Close()
	err = f(ctx, client{conn, searchv1.NewSearchServiceClient(conn), ingestv1.NewIngestServiceClient(conn)})
	if err != nil {
		return &callError{addr: addr, err: err}
	}
	return nil
}
