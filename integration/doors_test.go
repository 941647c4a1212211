package integration

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	ingestv1 "github.com/trawl-search/trawl/proto/trawl/ingest/v1"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

// bomb is a compression that sends the same bytes for every message: what inflates to
// 16 MiB.
type bomb struct{ bytes []byte }

func newBomb(t *testing.T) bomb {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	// The field query, of 16 MiB less its head.
	const head, size = 5, 16 << 20
	if _, err := w.Write(append([]byte{0x0a, 0xfb, 0xff, 0xff, 0x07}, bytes.Repeat([]byte("x"), size-head)...)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return bomb{b.Bytes()}
}

func (bomb) Name() string                                   { return "gzip" }
func (b bomb) Compress(w io.Writer) (io.WriteCloser, error) { return &bombWriter{w, b.bytes}, nil }
func (bomb) Decompress(r io.Reader) (io.Reader, error)      { return r, nil }

type bombWriter struct {
	to   io.Writer
	bomb []byte
}

func (*bombWriter) Write(p []byte) (int, error) { return len(p), nil }
func (w *bombWriter) Close() error              { _, err := w.to.Write(w.bomb); return err }

// peakMemory is the most memory that a process has had, in MiB.
func (p *process) peakMemory(t *testing.T) int {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		t.Skipf("the memory of a process is not known here: %v", err)
	}
	for line := range strings.Lines(string(text)) {
		var kib int
		if n, _ := fmt.Sscanf(line, "VmHWM: %d kB", &kib); n == 1 {
			return kib >> 10
		}
	}
	t.Fatalf("%s has no peak of memory", p.name)
	return 0
}

// TestBombsWithoutToken: two hundred callers without a token, at once, send a router
// messages that inflate to 16 MiB, and HTTP bodies of 8 MiB. The router does not take
// them into memory, and answers the caller that has a token all the time.
func TestBombsWithoutToken(t *testing.T) {
	c := &cluster{owner: t, dir: t.TempDir()}
	c.startServers(t)
	c.router = c.role(t, "router", "router", "--nats-url", c.nats, "--access-mode", "tokens")
	at := c.router.addresses(t)
	create := exec.CommandContext(t.Context(), trawlBinary, "tokens", "create", "--etcd-endpoints", c.etcd, "--name", "honest", "--allow", "**", "--scopes", "admin")
	create.Env = processEnv()
	token, err := create.Output()
	if err != nil {
		t.Fatal(err)
	}
	dial := func() *grpc.ClientConn {
		conn, err := grpc.NewClient(at.GRPC, grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		return conn
	}
	honest := dial()
	ask := func() error {
		ctx := metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer "+strings.TrimSpace(string(token)))
		ctx, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		_, err := searchv1.NewSearchServiceClient(honest).Search(ctx, &searchv1.SearchRequest{Query: "x"})
		return err
	}
	eventually(t, "the router answers", func(context.Context) error { return ask() })

	encoding.RegisterCompressor(newBomb(t)) // in this process only; nothing else in it compresses
	before := c.router.peakMemory(t)
	var bombs sync.WaitGroup
	thrown := make(chan struct{})
	for range 20 {
		conn := dial()
		for range 10 {
			bombs.Go(func() {
				for range 5 {
					for _, method := range []string{
						searchv1.SearchService_Search_FullMethodName, searchv1.SearchService_List_FullMethodName, ingestv1.IngestService_PutRepo_FullMethodName,
					} {
						err := conn.Invoke(t.Context(), method, &searchv1.SearchRequest{Query: "x"}, &searchv1.SearchResponse{}, grpc.UseCompressor("gzip"))
						if status.Code(err) != codes.Unauthenticated {
							t.Errorf("%s without a token: %v", method, err)
						}
					}
					throwBody(t.Context(), "http://"+at.HTTP+"/api/search")
				}
			})
		}
	}
	go func() { bombs.Wait(); close(thrown) }()
	answered := 0
	for over := false; !over; {
		select {
		case <-thrown:
			over = true
		default:
		}
		if err := ask(); err != nil {
			t.Fatalf("the caller with a token: %v", err)
		}
		answered++
		time.Sleep(time.Millisecond)
	}
	after := c.router.peakMemory(t)
	t.Logf("%d answers meanwhile; the router's peak went from %d to %d MiB", answered, before, after)
	if after > before+128 {
		t.Errorf("the router took %d MiB for callers without a token", after-before)
	}
}

// throwBody sends a large body without a token. The answer may come before the end.
func throwBody(ctx context.Context, url string) {
	const size = 8 << 20
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, io.LimitReader(spaces{}, size))
	if err != nil {
		return
	}
	req.ContentLength = size
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	if resp, err := client.Do(req); err == nil {
		resp.Body.Close()
	}
}

// spaces is an endless reader of white space.
type spaces struct{}

func (spaces) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = ' '
	}
	return len(p), nil
}
