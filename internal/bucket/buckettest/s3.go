package buckettest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/trawl-search/trawl/internal/bucket"
	"github.com/trawl-search/trawl/internal/testrun"
)

// The keys of the server.
const (
	AccessKey = "trawl-test-access"
	SecretKey = "trawl-test-secret"
)

const (
	// readyTime bounds the start of the server.
	readyTime = 30 * time.Second
)

// S3Server is a real S3 server, versitygw, in a process of its own. Its objects
// survive Stop and Start and are gone at the end of the test. Its methods are for the
// goroutine of the test.
type S3Server struct {
	tb     testing.TB
	binary string
	dir    string
	addr   string
	cmd    *exec.Cmd
	ended  chan struct{} // closed when the process has ended
	output lockedBuffer
}

// StartS3 builds the server if needed (minutes, the first time), starts it on the loopback
// interface, and stops it at the end of the test.
func StartS3(tb testing.TB) *S3Server {
	tb.Helper()
	s := &S3Server{tb: tb, binary: serverBinary(tb), dir: tb.TempDir(), addr: testrun.Address(tb)}
	for _, sub := range []string{"data", "meta"} {
		if err := os.Mkdir(filepath.Join(s.dir, sub), 0o700); err != nil {
			tb.Fatal(err)
		}
	}
	tb.Cleanup(s.Stop)
	s.Start()
	return s
}

// Config makes a bucket of the name (at least three characters) and returns its
// configuration.
func (s *S3Server) Config(name string) bucket.Config {
	s.tb.Helper()
	if err := os.Mkdir(filepath.Join(s.dir, "data", name), 0o700); err != nil {
		s.tb.Fatal(err)
	}
	var cfg bucket.Config
	cfg.SetDefaults()
	cfg.URL = fmt.Sprintf("s3://%s?endpoint=http://%s&region=us-east-1", name, s.addr)
	cfg.CredentialsFile = Credentials(s.tb, AccessKey, SecretKey)
	return cfg
}

// Credentials returns a file with the keys, for bucket.Config.CredentialsFile.
func Credentials(tb testing.TB, access, secret string) string {
	tb.Helper()
	path := filepath.Join(tb.TempDir(), "credentials")
	if err := os.WriteFile(path, CredentialsText(access, secret), 0o600); err != nil {
		tb.Fatal(err)
	}
	return path
}

// CredentialsText is the text of such a file.
func CredentialsText(access, secret string) []byte {
	return fmt.Appendf(nil, "[default]\naws_access_key_id = %s\naws_secret_access_key = %s\n", access, secret)
}

// Start starts the server after Stop, at the address it had, and waits until it answers.
func (s *S3Server) Start() {
	s.tb.Helper()
	if err := s.start(); err != nil {
		s.tb.Fatalf("start the S3 server: %v\n%s", err, s.output.String())
	}
}

func (s *S3Server) start() error {
	s.cmd = exec.Command(s.binary, "--port", s.addr, "--health", "/health", "--region", "us-east-1", "--quiet",
		"posix", "--sidecar", filepath.Join(s.dir, "meta"), filepath.Join(s.dir, "data"))
	s.cmd.Env = append(os.Environ(), "ROOT_ACCESS_KEY_ID="+AccessKey, "ROOT_SECRET_ACCESS_KEY="+SecretKey)
	s.cmd.Stdout, s.cmd.Stderr = &s.output, &s.output
	wait, err := testrun.Start(s.cmd)
	if err != nil {
		s.cmd = nil
		return err
	}
	s.ended = make(chan struct{})
	go func(ended chan struct{}) {
		defer close(ended)
		_ = wait() // its output says how it ended
	}(s.ended)
	if err := s.await(); err != nil {
		s.Stop()
		return err
	}
	return nil
}

// Stop kills the server. Doing so again does nothing.
func (s *S3Server) Stop() {
	if s.cmd == nil {
		return
	}
	_ = s.cmd.Process.Kill() // it may have ended by itself
	<-s.ended
	s.cmd = nil
}

// await waits until the server reports that it is healthy.
func (s *S3Server) await() error {
	ctx, cancel := context.WithTimeout(context.Background(), readyTime)
	defer cancel()
	for {
		err := s.healthy(ctx)
		select {
		case <-s.ended: // another server answered
			return errors.New("the process has ended")
		default:
		}
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// healthy checks the server's health once.
func (s *S3Server) healthy(ctx context.Context) error {
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: time.Second}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.addr+"/health", nil)
	if err != nil {
		return err
	}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("health: %s", resp.Status)
	}
	return nil
}

// lockedBuffer gathers what a process writes while the test may read it.
type lockedBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

// Write implements io.Writer.
func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

// String is what was written so far.
func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}
