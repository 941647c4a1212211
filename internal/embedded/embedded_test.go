package embedded_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/goleak"
	"go.uber.org/zap"

	"github.com/trawl-search/trawl/internal/embedded"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func config(dir string) embedded.Config {
	return embedded.Config{
		NoSync: true,
		Dir:    dir, Heartbeat: 10 * time.Millisecond, Election: 100 * time.Millisecond,
		Logger: slog.New(slog.DiscardHandler),
	}
}

func start(t *testing.T, cfg embedded.Config) *embedded.Embedded {
	t.Helper()
	e, err := embedded.Start(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func TestDataSurvivesRestart(t *testing.T) {
	cfg := config(t.TempDir())
	first := start(t, cfg)
	if _, err := first.Client().Put(t.Context(), "k", "v"); err != nil {
		t.Fatal(err)
	}
	js, err := jetstream.New(first.Conn())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "S", Subjects: []string{"s"}}); err != nil {
		t.Fatal(err)
	}
	if _, err := js.Publish(t.Context(), "s", []byte("m")); err != nil {
		t.Fatal(err)
	}
	endpoint := first.Etcd.Endpoint()
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}

	second := start(t, cfg)
	defer second.Close()
	if second.Etcd.Endpoint() != endpoint {
		t.Errorf("endpoint was %s, is %s", endpoint, second.Etcd.Endpoint())
	}
	resp, err := second.Client().Get(t.Context(), "k")
	if err != nil || len(resp.Kvs) != 1 || string(resp.Kvs[0].Value) != "v" {
		t.Errorf("after restart etcd answers %v, %v", resp, err)
	}
	if js, err = jetstream.New(second.Conn()); err != nil {
		t.Fatal(err)
	}
	stream, err := js.Stream(t.Context(), "S")
	if err != nil {
		t.Fatal(err)
	}
	if msg, err := stream.GetMsg(t.Context(), 1); err != nil || string(msg.Data) != "m" {
		t.Errorf("after restart NATS answers %v, %v", msg, err)
	}
}

func TestOtherProcessesConnect(t *testing.T) {
	cfg := config(t.TempDir())
	cfg.EtcdListen, cfg.NATSListen = "127.0.0.1:0", "127.0.0.1:0"
	e := start(t, cfg)
	defer e.Close()
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{e.Etcd.Endpoint()}, Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if _, err := client.Put(t.Context(), "k", "v"); err != nil {
		t.Errorf("etcd over TCP: %v", err)
	}
	nc, err := nats.Connect(e.NATS.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	if err := nc.FlushTimeout(time.Minute); err != nil {
		t.Errorf("NATS over TCP: %v", err)
	}
}

// An ordinary start and end logs no warnings or errors.
func TestQuietLog(t *testing.T) {
	var log bytes.Buffer
	cfg := config(t.TempDir())
	cfg.EtcdListen = "127.0.0.1:0"
	cfg.Logger = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn}))
	for range 2 {
		if err := start(t, cfg).Close(); err != nil {
			t.Fatal(err)
		}
	}
	if log.Len() > 0 {
		t.Errorf("log:\n%s", &log)
	}
}

func TestListensNowhereUnlessAsked(t *testing.T) {
	e := start(t, config(t.TempDir()))
	defer e.Close()
	if e.NATS.URL() != "" {
		t.Errorf("NATS listens at %s", e.NATS.URL())
	}
	socket, ok := strings.CutPrefix(e.Etcd.Endpoint(), "unix://")
	if !ok {
		t.Fatalf("etcd listens at %s, not on a unix socket", e.Etcd.Endpoint())
	}
	info, err := os.Stat(filepath.Dir(socket))
	if err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("folder of the socket: %v, %v; others may enter", info.Mode(), err)
	}
}

func TestLongFolderNameStillHasSockets(t *testing.T) {
	dir := filepath.Join(t.TempDir(), strings.Repeat("long", 30))
	etcd, err := embedded.StartEtcd(t.Context(), config(dir))
	if err != nil {
		t.Fatal(err)
	}
	defer etcd.Close()
	if _, err := etcd.Client().Put(t.Context(), "k", "v"); err != nil {
		t.Error(err)
	}
}

func TestFolderInUse(t *testing.T) {
	cfg := config(t.TempDir())
	e := start(t, cfg)
	defer e.Close()
	if _, err := embedded.StartEtcd(t.Context(), cfg); !errors.Is(err, embedded.ErrInUse) {
		t.Errorf("second etcd on the folder: %v", err)
	}
	if _, err := embedded.StartNATS(t.Context(), cfg); !errors.Is(err, embedded.ErrInUse) {
		t.Errorf("second NATS on the folder: %v", err)
	}
}

func TestOnlyLoopback(t *testing.T) {
	for _, address := range []string{"0.0.0.0:0", ":2379", "192.0.2.1:1", "example.org:80", "127.0.0.1"} {
		cfg := config(t.TempDir())
		cfg.EtcdListen, cfg.NATSListen = address, address
		if etcd, err := embedded.StartEtcd(t.Context(), cfg); err == nil {
			t.Errorf("etcd took %s", address)
			etcd.Close()
		}
		if n, err := embedded.StartNATS(t.Context(), cfg); err == nil {
			t.Errorf("NATS took %s", address)
			n.Close()
		}
	}
}

// A start that fails must leave the folder free for the next one.
func TestFailedStartCleansUp(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	cfg := config(t.TempDir())
	busy := cfg
	busy.EtcdListen = taken.Addr().String()
	if e, err := embedded.Start(t.Context(), busy); err == nil {
		e.Close()
		t.Fatal("started on a taken port")
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if e, err := embedded.Start(ended, cfg); err == nil {
		e.Close()
		t.Fatal("started with a context that has ended")
	}
	if err := start(t, cfg).Close(); err != nil {
		t.Error(err)
	}
}

func TestSecondCloseDoesNothing(t *testing.T) {
	e := start(t, config(t.TempDir()))
	for i := range 2 {
		if err := e.Close(); err != nil {
			t.Errorf("close %d: %v", i+1, err)
		}
	}
}
