package cli

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/trawl-search/trawl/internal/gitsource/gitsourcetest"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

// BenchmarkNearMiss measures what a query that finds nothing costs on its way through `trawl up`:
// one client in a closed loop, over gRPC and over zoekt's JSON interface. The processor time
// includes that of the client, which runs in the same process.
//
//	go test -run '^$' -bench NearMiss -benchtime 3s ./cmd/trawl/internal/cli
func BenchmarkNearMiss(b *testing.B) {
	grpcAddr, httpAddr := benchUp(b)
	const text = "Hauk"
	conn, err := grpc.NewClient(grpcAddr, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		b.Fatal(err)
	}
	defer conn.Close()
	client := searchv1.NewSearchServiceClient(conn)
	measure(b, "grpc", func() error {
		ctx, cancel := context.WithTimeout(b.Context(), 20*time.Second)
		defer cancel()
		resp, err := client.Search(ctx, &searchv1.SearchRequest{Query: text})
		if err == nil && (len(resp.Files) > 0 || !resp.Coverage.Complete || resp.Coverage.Searched != benchRepos) {
			b.Fatalf("%d files, coverage %v", len(resp.Files), resp.Coverage)
		}
		return err
	})
	measure(b, "json", func() error {
		resp, err := http.Post("http://"+httpAddr+"/api/search", "application/json", bytes.NewReader([]byte(`{"Q":"`+text+`"}`)))
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		if _, err := io.Copy(io.Discard, resp.Body); err != nil || resp.StatusCode != http.StatusOK {
			b.Fatalf("%s, %v", resp.Status, err)
		}
		return nil
	})
}

// benchRepos is how many repos are asked, each a shard.
const benchRepos = 3

// measure runs a benchmark that also reports processor time.
func measure(b *testing.B, name string, ask func() error) {
	b.Run(name, func(b *testing.B) {
		b.ReportAllocs()
		var before, after syscall.Rusage
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &before); err != nil {
			b.Fatal(err)
		}
		for b.Loop() {
			if err := ask(); err != nil {
				b.Fatal(err)
			}
		}
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &after); err != nil {
			b.Fatal(err)
		}
		used := after.Utime.Nano() + after.Stime.Nano() - before.Utime.Nano() - before.Stime.Nano()
		b.ReportMetric(float64(used)/float64(b.N), "cpu-ns/op")
	})
}

// benchUp runs all roles in this process, with a few small repos, until the
// benchmark ends.
func benchUp(b *testing.B) (grpcAddr, httpAddr string) {
	b.Helper()
	ctx, cancel := context.WithCancel(b.Context())
	pr, pw := io.Pipe()
	var log strings.Builder
	var ended sync.WaitGroup
	ended.Go(func() {
		Run(ctx, []string{"up", "--data-dir", b.TempDir(), "--grpc", "127.0.0.1:0", "--http", "127.0.0.1:0"}, Process{Out: pw, Err: &log})
		pw.Close()
	})
	b.Cleanup(func() { cancel(); ended.Wait() })
	var line string
	if err := readLine(pr, &line); err != nil {
		b.Fatalf("%v\n%s", err, log.String())
	}
	grpcAddr, httpAddr, _ = strings.Cut(strings.TrimPrefix(line, "ready: gRPC "), ", HTTP ")
	for i := range benchRepos {
		repo := gitsourcetest.New(b)
		repo.Files("main", "pond.go", fmt.Sprintf("package pond%d\n\n// Catch returns the fish of one haul.\nfunc Catch(net Net) []Fish { return net.Haul() }\n", i))
		var errs strings.Builder
		if exit := Run(b.Context(), []string{"index", "--addr", grpcAddr, repo.Dir}, Process{Out: io.Discard, Err: &errs}); exit != 0 {
			b.Fatal(errs.String())
		}
	}
	return grpcAddr, httpAddr
}
