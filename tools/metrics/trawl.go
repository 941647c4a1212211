package metrics

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
)

// Trawl is a process of the binary with all roles, or a canary.
type Trawl struct {
	Binary, Addr, Metrics string

	cmd   *exec.Cmd
	out   *io.PipeReader
	ended chan error
}

// Start runs the binary that TRAWL_TEST_BINARY names, or bin/trawl of the repository at root, which
// it makes. The process has its data in dir, and intervals of maintenance short enough for tests. A canary may listen at
// the address canary.
func Start(ctx context.Context, root, dir, canary string) (*Trawl, error) {
	t := &Trawl{Binary: os.Getenv("TRAWL_TEST_BINARY")}
	if t.Binary == "" {
		t.Binary = filepath.Join(root, "bin", "trawl")
		if out, err := exec.CommandContext(ctx, "make", "-s", "-C", root, "build").CombinedOutput(); err != nil {
			return nil, fmt.Errorf("build trawl: %w\n%s", err, out)
		}
	}
	return t, t.start("router", "up", "--data-dir", filepath.Join(dir, "data"), "--grpc", "127.0.0.1:0", "--http", "127.0.0.1:0",
		"--source-canary", "http://"+canary+"/trawl/canary.git", "--indexer-reconcile-every", "1s", "--indexer-gc-every", "1s")
}

// StartCanary starts a canary that watches this process, at an address that it may listen at.
func (t *Trawl) StartCanary(address string) (*Trawl, error) {
	c := &Trawl{Binary: t.Binary}
	router := strings.TrimSuffix(strings.TrimPrefix(t.Metrics, "http://"), "/metrics")
	return c, c.start("canary", "canary", "--grpc", "127.0.0.1:0", "--http", address, "--router-grpc", t.Addr, "--router-http", router, "--every", "1s")
}

// start runs the binary, and waits until a role reports its address.
func (t *Trawl) start(role string, args ...string) error {
	t.cmd = exec.CommandContext(context.Background(), t.Binary, append(args, "--log-level", "info", "--log-format", "json")...)
	var in *io.PipeWriter
	t.out, in = io.Pipe()
	t.cmd.Stdout, t.cmd.Stderr = in, in
	// The process ends with this one, however that ends: the kernel kills it when the thread ends that
	// started it, so a goroutine keeps that thread until then.
	t.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	started := make(chan error)
	t.ended = make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := t.cmd.Start()
		started <- err
		if err == nil {
			t.ended <- t.cmd.Wait()
		}
	}()
	if err := <-started; err != nil {
		return fmt.Errorf("start trawl: %w", err)
	}
	return t.await(role)
}

// await reads the log until a role reports its address, and discards the rest.
func (t *Trawl) await(role string) error {
	lines := bufio.NewScanner(t.out)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var said struct{ Msg, Component, GRPC, HTTP string }
		if json.Unmarshal(lines.Bytes(), &said) == nil && said.Msg == "serving" && said.Component == role {
			t.Addr, t.Metrics = said.GRPC, "http://"+said.HTTP+"/metrics"
			go func() { _, _ = io.Copy(io.Discard, t.out) }() // until the process has ended
			return nil
		}
	}
	return errors.Join(errors.New("trawl did not log the address of its "+role), t.Stop())
}

// Run runs a trawl command against this process.
func (t *Trawl) Run(ctx context.Context, command string, args ...string) error {
	cmd := exec.CommandContext(ctx, t.Binary, append([]string{command, "--addr", t.Addr}, args...)...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("trawl %s %s: %w\n%s", command, strings.Join(args, " "), err, out)
	}
	return nil
}

// Stop ends the process and waits for it.
func (t *Trawl) Stop() error {
	if err := t.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("stop trawl: %w", err)
	}
	err := <-t.ended
	return errors.Join(err, t.out.Close())
}

// Repository makes a Git repository in a folder from files.
func Repository(ctx context.Context, dir string, files map[string]string) error {
	for path, content := range files {
		path = filepath.Join(dir, path)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(content), 0o600)); err != nil {
			return err
		}
	}
	for _, args := range [][]string{{"init", "-q", "-b", "main"}, {"add", "-A"}, {"commit", "-q", "-m", "a commit"}} {
		cmd := exec.CommandContext(ctx, "git", append([]string{"-c", "user.name=t", "-c", "user.email=t@t.invalid"}, args...)...)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null")
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("git %s: %w\n%s", args[0], err, out)
		}
	}
	return nil
}
