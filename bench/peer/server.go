package peer

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// Server is a process that answers queries. It ends with Close, or with the context that started
// it. It is safe for concurrent use.
type Server struct {
	// HTTP and GRPC are addresses, HOST:PORT; only Trawl has the second.
	HTTP, GRPC string
	// Etcd and NATS are the URLs of the etcd and NATS that Trawl hosts; empty if they do not
	// listen.
	Etcd, NATS string
	cmd        *exec.Cmd
	client     *http.Client
	ended      chan struct{}
	err        error // of the process, once ended is closed
}

const (
	// endTime is how long a server may take to end by itself.
	endTime = 30 * time.Second
	// readyTime is how long it may take to start and to load its repos.
	readyTime = 2 * time.Minute
	// connections is the number of connections kept open, for as many clients.
	connections = 128
)

// start runs the program. The end of its context ends it.
func start(cmd *exec.Cmd, prepare func() error) (*Server, error) {
	s := &Server{cmd: cmd, ended: make(chan struct{}), client: &http.Client{Transport: &http.Transport{
		MaxIdleConns: connections, MaxIdleConnsPerHost: connections, DisableCompression: true,
	}}}
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = endTime
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting %s: %w", cmd.Path, err)
	}
	if prepare != nil {
		late := time.AfterFunc(readyTime, func() { _ = cmd.Process.Kill() }) // prepare then reaches the end of its input
		defer late.Stop()
		if err := prepare(); err != nil {
			_ = cmd.Process.Kill() // it may have ended, but did not start properly
			return nil, errors.Join(fmt.Errorf("starting %s: %w", cmd.Path, err), cmd.Wait())
		}
	}
	go func() {
		s.err = cmd.Wait()
		close(s.ended)
	}()
	return s, nil
}

// PID is the number of the process.
func (s *Server) PID() int { return s.cmd.Process.Pid }

// Close ends the process. It kills it if it takes too long.
func (s *Server) Close() error {
	s.client.CloseIdleConnections()
	_ = s.cmd.Process.Signal(syscall.SIGTERM) // it may have ended already
	select {
	case <-s.ended:
	case <-time.After(endTime):
		_ = s.cmd.Process.Kill()
		<-s.ended
		return fmt.Errorf("%s did not end within %s and was killed", s.cmd.Path, endTime)
	}
	if status, ok := errors.AsType[*exec.ExitError](s.err); ok && signalled(status) {
		return nil // zoekt has no other way to end
	}
	if s.err != nil {
		return fmt.Errorf("%s: %w", s.cmd.Path, s.err)
	}
	return nil
}

func signalled(e *exec.ExitError) bool {
	status, ok := e.Sys().(syscall.WaitStatus)
	return ok && status.Signaled() && status.Signal() == syscall.SIGTERM
}

// TrawlVersion returns what the program reports as its version, and its digest.
func TrawlVersion(ctx context.Context, program string) string {
	return firstLine(ctx, program, "version") + ", SHA-256 " + digest(program)
}

// Trawl runs all roles in one process, with all data in the folder data. Its log goes to log.
func Trawl(ctx context.Context, log io.Writer, program, data string, args ...string) (*Server, error) {
	cmd := exec.CommandContext(ctx, program, append([]string{"up", "--data-dir", data, "--grpc", "127.0.0.1:0", "--http", "127.0.0.1:0"}, args...)...)
	cmd.Stderr = log
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("starting %s: %w", program, err)
	}
	var at map[string]string
	s, err := start(cmd, func() (err error) {
		at, err = readyLine(out)
		return err
	})
	if err != nil {
		return nil, err
	}
	s.GRPC, s.HTTP, s.Etcd, s.NATS = at["gRPC"], at["HTTP"], at["etcd"], at["NATS"]
	return s, nil
}

// readyLine reads the addresses that `trawl up` prints once it is ready, by name.
func readyLine(r io.Reader) (map[string]string, error) {
	line, err := bufio.NewReader(r).ReadString('\n')
	list, ok := strings.CutPrefix(strings.TrimSpace(line), "ready: ")
	if err != nil || !ok {
		return nil, errors.Join(fmt.Errorf("expected a line with the addresses, found %q", line), err)
	}
	at := map[string]string{}
	for part := range strings.SplitSeq(list, ", ") {
		name, address, _ := strings.Cut(part, " ")
		at[name] = address
	}
	return at, nil
}

// Role runs one of Trawl's serving roles, router or searcher, on its own, with an external etcd.
// env are additional variables, NAME=value. The role is healthy when it returns, but not yet ready.
func Role(ctx context.Context, log io.Writer, program, role, etcd string, env []string, args ...string) (*Server, error) {
	address, err := freeAddress(ctx)
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, program, append([]string{
		role, "--etcd-endpoints", etcd, "--grpc", "127.0.0.1:0", "--http", address,
		"--drain-delay", "0", "--replication", "1", "--access-mode", "off",
	}, args...)...)
	cmd.Stderr, cmd.Env = log, append(os.Environ(), env...)
	return startAt(ctx, cmd, address, "/healthz")
}

// Gateway serves a folder by the protocol of S3, with the program versitygw.
func Gateway(ctx context.Context, log io.Writer, program, dir, access, secret string) (*Server, error) {
	address, err := freeAddress(ctx)
	if err != nil {
		return nil, err
	}
	for _, sub := range []string{"data", "meta"} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o777); err != nil {
			return nil, fmt.Errorf("making a folder for objects: %w", err)
		}
	}
	cmd := exec.CommandContext(ctx, program, "--port", address, "--health", "/health", "--region", Region, "posix",
		"--sidecar", filepath.Join(dir, "meta"), filepath.Join(dir, "data"))
	cmd.Stderr, cmd.Env = log, append(os.Environ(), "ROOT_ACCESS_KEY_ID="+access, "ROOT_SECRET_ACCESS_KEY="+secret)
	return startAt(ctx, cmd, address, "/health")
}

// Region of the gateway.
const Region = "us-east-1"

// startAt starts a server and waits until it is healthy.
func startAt(ctx context.Context, cmd *exec.Cmd, address, health string) (*Server, error) {
	s, err := start(cmd, nil)
	if err != nil {
		return nil, err
	}
	s.HTTP = address
	ctx, cancel := context.WithTimeout(ctx, readyTime)
	defer cancel()
	for {
		if _, err = s.call(ctx, http.MethodGet, health, nil); err == nil {
			return s, nil
		}
		select {
		case <-s.ended:
			return nil, fmt.Errorf("%s ended before it was ready: %w", cmd.Path, errors.Join(s.err, err))
		case <-ctx.Done():
			return nil, errors.Join(fmt.Errorf("%s was not ready within %s: %w", cmd.Path, readyTime, err), s.Close())
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// Zoekt serves the index in a folder. env are additional variables, NAME=value.
func Zoekt(ctx context.Context, program, index string, env ...string) (*Server, error) {
	address, err := freeAddress(ctx)
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, program, "-index", index, "-listen", address, "-rpc", "-html=false")
	cmd.Env = append(os.Environ(), env...)
	s, err := start(cmd, nil)
	if err != nil {
		return nil, err
	}
	s.HTTP = address
	return s, nil
}

// freeAddress returns an address on which nothing listens, for a program that cannot choose one
// itself.
func freeAddress(ctx context.Context) (string, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("finding a free port: %w", err)
	}
	return listener.Addr().String(), listener.Close()
}
