package cli

import (
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// TestPasswordOfNATSIsReadAgain: when the server asks for another password, a connection logs in with
// what the file has then.
func TestPasswordOfNATSIsReadAgain(t *testing.T) {
	file := filepath.Join(t.TempDir(), "password")
	options := server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, NoSigs: true, NoLog: true, Username: "trawl"}
	set := func(password string) {
		t.Helper()
		options.Password = password
		if err := os.WriteFile(file, []byte(password+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	set("first")
	start := func() *server.Server {
		t.Helper()
		s, err := server.NewServer(&options)
		if err != nil {
			t.Fatal(err)
		}
		s.Start()
		if !s.ReadyForConnections(time.Minute) {
			t.Fatal("NATS does not start")
		}
		return s
	}
	s := start()
	cfg := natsConfig{URL: s.ClientURL(), Username: "trawl", PasswordFile: file, Replicas: 1, Prefix: "trawl"}
	if err := cfg.Validate(); err != nil {
		t.Fatal(err)
	}
	conn, err := cfg.connect(slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	connected := func(when string) {
		t.Helper()
		for end := time.Now().Add(time.Minute); !conn.IsConnected(); time.Sleep(10 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("%s: not connected: %v", when, conn.LastError())
			}
		}
	}
	connected("at the start")
	options.Port = s.Addr().(*net.TCPAddr).Port
	s.Shutdown()
	s.WaitForShutdown()
	set("second")
	s = start()
	defer s.WaitForShutdown()
	defer s.Shutdown()
	for end := time.Now().Add(time.Minute); s.NumClients() == 0; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not connected again: %v", conn.LastError())
		}
	}
	connected("with the second password")
	cfg.Password = "both"
	if cfg.Validate() == nil {
		t.Error("a password and a file with one are accepted together")
	}
}
