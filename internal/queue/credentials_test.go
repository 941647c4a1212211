package queue_test

import (
	"strings"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"github.com/trawl-search/trawl/internal/queue"
	"github.com/trawl-search/trawl/internal/testrun"
)

// TestCredentials: a server that requires a password gets it. A wrong one is reported
// and tried again; the connection is not given up.
func TestCredentials(t *testing.T) {
	s, err := server.NewServer(&server.Options{
		Host: "127.0.0.1", Port: server.RANDOM_PORT, JetStream: true, StoreDir: t.TempDir(), NoSigs: true, NoLog: true,
		Username: "trawl", Password: "right",
	})
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	defer s.WaitForShutdown()
	defer s.Shutdown()
	for password, want := range map[string]string{"right": "", "wrong": "Authorization Violation"} {
		nc, err := queue.Connect(s.ClientURL(), nats.UserInfo("trawl", password))
		if err != nil {
			t.Fatal(err)
		}
		defer nc.Close()
		q := newQueue(t, nc, brisk())
		testrun.Until(t, password, func() bool {
			if want == "" {
				return q.Ensure(t.Context()) == nil
			}
			_, err := q.Depth(t.Context())
			return err != nil && strings.Contains(err.Error(), "connect to NATS") && strings.Contains(err.Error(), want)
		})
		if nc.IsClosed() {
			t.Errorf("with the password %s the connection was given up", password)
		}
	}
}

// TestNobodyThere: if no server was ever reached, the error names the address,
// without the password.
func TestNobodyThere(t *testing.T) {
	nc, err := queue.Connect("nats://trawl:secret@nobody.invalid:4222")
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	_, err = newQueue(t, nc, brisk()).Depth(t.Context())
	if err == nil || !strings.Contains(err.Error(), "connect to NATS at nats://nobody.invalid:4222") || strings.Contains(err.Error(), "secret") {
		t.Errorf("without a server: %v", err)
	}
}
