package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/credentials/local"

	"github.com/trawl-search/trawl/internal/access"
	"github.com/trawl-search/trawl/internal/tlsfiles"
	adminv1 "github.com/trawl-search/trawl/proto/trawl/admin/v1"
	ingestv1 "github.com/trawl-search/trawl/proto/trawl/ingest/v1"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

// defaultAddress is where `trawl up` serves gRPC by default.
const defaultAddress = "127.0.0.1:7430"

// maxAnswer bounds one message from a router: 64 MiB of content and its frame.
const maxAnswer = 80 << 20

// routerAt is the address of a router and the credentials of the caller.
type routerAt struct {
	addr      string
	token     access.Text
	tokenFile string
	// tls asks for TLS. Any of files implies it.
	tls   bool
	files tlsfiles.ClientConfig
	// exposed sends the token in plain text to other machines, too.
	exposed bool
}

// addressFlag declares --addr, whose default may come from $TRAWL_ADDR, and
// --token-file. A token itself is never a flag: others see the command line.
func addressFlag(flags *pflag.FlagSet, p Process, at *routerAt) {
	flags.StringVar(&at.addr, "addr", cmp.Or(p.env("TRAWL_ADDR"), defaultAddress), "host:port of a router, or $TRAWL_ADDR")
	at.token = access.Text(p.env("TRAWL_TOKEN"))
	flags.StringVar(&at.tokenFile, "token-file", "", "file with the token by which the router knows you, or the token itself in $TRAWL_TOKEN")
	flags.BoolVar(&at.tls, "tls", p.env("TRAWL_TLS") == "1", "speak TLS with the router, or $TRAWL_TLS=1; implied by --ca-file and --cert-file")
	flags.StringVar(&at.files.CAFile, "ca-file", p.env("TRAWL_CA_FILE"), "PEM file with the CAs of the router, or $TRAWL_CA_FILE; empty: the system's CAs")
	flags.StringVar(&at.files.CertFile, "cert-file", p.env("TRAWL_CERT_FILE"), "file with your certificate, PEM, for routers that want one, or $TRAWL_CERT_FILE")
	flags.StringVar(&at.files.KeyFile, "key-file", p.env("TRAWL_KEY_FILE"), "file with the key of your certificate, PEM, or $TRAWL_KEY_FILE")
	flags.BoolVar(&at.exposed, "plaintext-token", false, "send the token to another machine without TLS: anybody who sees the network can use it")
}

// options returns the options of a connection that sends the token, if there is one.
func (at routerAt) options() ([]grpc.DialOption, error) {
	if _, _, err := net.SplitHostPort(at.addr); err != nil && !strings.Contains(at.addr, ":///") { // gRPC would try port 443
		return nil, usageError{fmt.Errorf("--addr is %q: want HOST:PORT of the gRPC server, such as %s", at.addr, defaultAddress)}
	}
	if at.tokenFile != "" {
		var err error
		if at.token, err = access.ReadText(at.tokenFile); err != nil {
			return nil, err
		}
	}
	transport, err := at.transport()
	if err != nil {
		return nil, err
	}
	options := []grpc.DialOption{grpc.WithTransportCredentials(transport)}
	switch {
	case at.token == "":
	case at.exposed:
		options = append(options, grpc.WithPerRPCCredentials(access.Exposed{Text: at.token}))
	default:
		options = append(options, grpc.WithPerRPCCredentials(at.token))
	}
	return options, nil
}

// transport returns the credentials of the connection. A token is not sent to another
// machine in plain text, whatever the name of the address resolves to.
func (at routerAt) transport() (credentials.TransportCredentials, error) {
	switch {
	case at.tls || at.files.Set():
		if (at.files.CertFile == "") != (at.files.KeyFile == "") {
			return nil, usageError{errors.New("--cert-file and --key-file belong together")}
		}
		files, err := tlsfiles.NewClient(at.files, slog.New(slog.DiscardHandler))
		if err != nil {
			return nil, err
		}
		return files.Credentials(), nil
	case at.token == "" || at.exposed:
		return insecure.NewCredentials(), nil
	case !access.Loopback(at.addr):
		return nil, usageError{fmt.Errorf("the token would go to %s in plain text, where others could read and use it: add --tls "+
			"(with --ca-file for a CA of your own), or --plaintext-token if the network between is encrypted", at.addr)}
	}
	return local.NewCredentials(), nil
}

// client calls a router.
type client struct {
	conn   *grpc.ClientConn
	search searchv1.SearchServiceClient
	ingest ingestv1.IngestServiceClient

	sources ingestv1.SourceServiceClient
	admin   adminv1.AdminServiceClient
}

// withClient runs f with a client of the router.
func withClient(ctx context.Context, at routerAt, f func(context.Context, client) error) error {
	options, err := at.options()
	if err != nil {
		return err
	}
	conn, err := grpc.NewClient(at.addr, append(options,
		grpc.WithNoProxy(),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxAnswer)),
	)...)
	if err != nil {
		return fmt.Errorf("connecting to %s: %w", at.addr, err)
	}
	defer conn.Close()
	err = f(ctx, client{
		conn, searchv1.NewSearchServiceClient(conn), ingestv1.NewIngestServiceClient(conn), ingestv1.NewSourceServiceClient(conn),
		adminv1.NewAdminServiceClient(conn),
	})
	if err != nil {
		return callFailed(at.addr, conn, err)
	}
	return nil
}

// calling makes cmd call a router. Its flags must be declared: the shell completes those that are names of what is indexed.
func calling(p Process, cmd *cobra.Command, run func(ctx context.Context, c client, args []string) error) *cobra.Command {
	var at routerAt
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return withClient(cmd.Context(), at, func(ctx context.Context, c client) error { return run(ctx, c, args) })
	}
	addressFlag(cmd.Flags(), p, &at)
	completeNames(cmd, &at)
	return cmd
}

// listing makes cmd print what list prints of a router, as JSON if the caller asks for it.
func listing(p Process, cmd *cobra.Command, list func(ctx context.Context, c client, asJSON bool) error) *cobra.Command {
	cmd.Args = usageArgs(knownCommand)
	asJSON := cmd.Flags().Bool("json", false, "print one JSON object a line")
	return calling(p, cmd, func(ctx context.Context, c client, _ []string) error { return list(ctx, c, *asJSON) })
}
