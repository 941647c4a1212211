package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/pflag"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/trawl-search/trawl/internal/access"
	ingestv1 "github.com/trawl-search/trawl/proto/trawl/ingest/v1"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

// defaultAddress is where `trawl up` serves gRPC by default.
const defaultAddress = "127.0.0.1:7430"

// maxAnswer bounds one message from a router: 64 MiB of content and its frame.
const maxAnswer = 80 << 20

// routerAt is a router, and how it knows the caller.
type routerAt struct {
	addr      string
	token     access.Text
	tokenFile string
}

// addressFlag declares --addr, whose default may come from $TRAWL_ADDR, and
// --token-file. A token itself is never a flag: others see the command line.
func addressFlag(flags *pflag.FlagSet, p Process, at *routerAt) {
	standard := p.env("TRAWL_ADDR")
	if standard == "" {
		standard = defaultAddress
	}
	flags.StringVar(&at.addr, "addr", standard, "host:port of a router, or $TRAWL_ADDR")
	at.token = access.Text(p.env("TRAWL_TOKEN"))
	flags.StringVar(&at.tokenFile, "token-file", "", "file with the token by which the router knows you, or the token itself in $TRAWL_TOKEN")
}

// maxTokenFile bounds a file with a token, in bytes.
const maxTokenFile = 4 << 10

// credentials are the options of a connection that shows the token, if there is one.
func (at routerAt) credentials() ([]grpc.DialOption, error) {
	if at.tokenFile != "" {
		f, err := os.Open(at.tokenFile)
		if err != nil {
			return nil, fmt.Errorf("reading the token: %w", err)
		}
		defer f.Close()
		text, err := io.ReadAll(io.LimitReader(f, maxTokenFile))
		if err != nil {
			return nil, fmt.Errorf("reading the token: %w", err)
		}
		at.token = access.Text(strings.TrimSpace(string(text)))
	}
	if at.token == "" {
		return nil, nil
	}
	return []grpc.DialOption{grpc.WithPerRPCCredentials(at.token)}, nil
}

// client calls a router.
type client struct {
	conn   *grpc.ClientConn
	search searchv1.SearchServiceClient
	ingest ingestv1.IngestServiceClient

	sources ingestv1.SourceServiceClient
}

// withClient runs f with a client of the router.
func withClient(ctx context.Context, at routerAt, f func(context.Context, client) error) error {
	options, err := at.credentials()
	if err != nil {
		return err
	}
	conn, err := grpc.NewClient(at.addr, append(options,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithNoProxy(),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxAnswer)),
	)...)
	if err != nil {
		return fmt.Errorf("connecting to %s: %w", at.addr, err)
	}
	defer conn.Close()
	err = f(ctx, client{
		conn, searchv1.NewSearchServiceClient(conn), ingestv1.NewIngestServiceClient(conn), ingestv1.NewSourceServiceClient(conn),
	})
	if err != nil {
		return &callError{addr: at.addr, err: err}
	}
	return nil
}
