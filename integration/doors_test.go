package integration

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/trawl-search/trawl/integration/hostile"
	"github.com/trawl-search/trawl/internal/testrun"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

// peakMemory is the most memory that a process has had, in MiB.
func (p *process) peakMemory(t *testing.T) int {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		t.Skipf("no memory statistics of processes on this system: %v", err)
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

// TestBombsWithoutToken: two hundred callers without a token send a router messages that
// inflate to 16 MiB, and HTTP bodies of 8 MiB, all at once. The router does not take them into
// memory, and goes on answering the caller that has a token.
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
	testrun.Eventually(t, "the router answers", func(context.Context) error { return ask() })

	if err := hostile.RegisterBombs(); err != nil { // in this process only; nothing else in it compresses
		t.Fatal(err)
	}
	before := c.router.peakMemory(t)
	thrown := make(chan struct{})
	var conns []*grpc.ClientConn
	for range 20 {
		conns = append(conns, dial())
	}
	go func() {
		defer close(thrown)
		hostile.ThrowBombs(t.Context(), conns, "http://"+at.HTTP+"/api/search", func(method string, err error) {
			if status.Code(err) != codes.Unauthenticated {
				t.Errorf("%s without a token: %v", method, err)
			}
		})
	}()
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
	if after > before+256 { // 70 were measured; the bombs have 3,200
		t.Errorf("the router took %d MiB for callers without a token", after-before)
	}
}
