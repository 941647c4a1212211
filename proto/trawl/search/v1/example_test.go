package searchv1_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

// A stream has the files and, at its end, the coverage. Only a complete coverage means that
// there are no other matches.
func ExampleSearchServiceClient() {
	address, stop := router()
	defer stop()
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	ctx = metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+"TOKEN")
	if err := find(ctx, searchv1.NewSearchServiceClient(conn), "needle"); err != nil {
		fmt.Println(err)
	}
	if err := find(ctx, searchv1.NewSearchServiceClient(conn), "a (b"); err != nil {
		fmt.Println(err)
	}
	// Output:
	// host/pond a/fish.go: 1 match
	// 1 of 1 shards searched
	// at byte 2: expected a closing ")"
}

func find(ctx context.Context, client searchv1.SearchServiceClient, query string) error {
	stream, err := client.StreamSearch(ctx, &searchv1.StreamSearchRequest{Search: &searchv1.SearchRequest{
		Query: query, Options: &searchv1.SearchOptions{Mode: searchv1.Mode_MODE_TOP_K, MaxFiles: 10},
	}})
	if err != nil {
		return err
	}
	for {
		piece, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return explained(err)
		}
		for _, f := range piece.Files {
			fmt.Printf("%s %s: %d match\n", f.Repo, f.Path, f.MatchCount)
		}
		if c := piece.Coverage; c != nil {
			fmt.Printf("%d of %d shards searched\n", c.Searched, c.Requested)
		}
	}
}

// explained adds to an error the place in the query that caused it.
func explained(err error) error {
	for _, detail := range status.Convert(err).Details() {
		if wrong, ok := detail.(*searchv1.QueryError); ok {
			return fmt.Errorf("at byte %d: expected %s", wrong.Position, wrong.Expected)
		}
	}
	return err
}

// pond stands in for a router.
type pond struct {
	searchv1.UnimplementedSearchServiceServer
}

func (pond) StreamSearch(req *searchv1.StreamSearchRequest, stream grpc.ServerStreamingServer[searchv1.StreamSearchResponse]) error {
	if req.Search.Query != "needle" {
		wrong, err := status.New(codes.InvalidArgument, "query").WithDetails(&searchv1.QueryError{Position: 2, Expected: `a closing ")"`})
		if err != nil {
			return err
		}
		return wrong.Err()
	}
	file := &searchv1.FileMatch{Repo: "host/pond", Path: []byte("a/fish.go"), MatchCount: 1}
	if err := stream.Send(&searchv1.StreamSearchResponse{Files: []*searchv1.FileMatch{file}}); err != nil {
		return err
	}
	return stream.Send(&searchv1.StreamSearchResponse{Coverage: &searchv1.Coverage{Complete: true, Requested: 1, Searched: 1}})
}

func router() (address string, stop func()) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err.Error(), func() {}
	}
	server := grpc.NewServer()
	searchv1.RegisterSearchServiceServer(server, pond{})
	served := make(chan error, 1)
	go func() { served <- server.Serve(ln) }()
	return ln.Addr().String(), func() { server.Stop(); <-served }
}
