package integration

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/trawl-search/trawl/internal/pinned"
	"github.com/trawl-search/trawl/internal/testrun"
)

// trawlBinary is the binary under test, found by TestMain.
var trawlBinary string

func TestMain(m *testing.M) {
	var err error
	if trawlBinary, err = pinned.Trawl(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// patience bounds every wait for something that must happen. It is large, so that a test
// fails only when nothing moves any more.
const patience = 2 * time.Minute

// process is a running trawl.
type process struct {
	name string
	cmd  *exec.Cmd
	done chan struct{} // closed when it has ended
	err  error         // valid after done

	mu      sync.Mutex
	lines   []string // of both outputs
	changed chan struct{}
}

// start runs the binary with args until the test ends.
func start(t *testing.T, name string, args ...string) *process {
	t.Helper()
	return startBinary(t, trawlBinary, name, args...)
}

// startBinary is start for another binary.
func startBinary(t *testing.T, binary, name string, args ...string) *process {
	t.Helper()
	p := &process{name: name, cmd: exec.Command(binary, args...), done: make(chan struct{}), changed: make(chan struct{})}
	p.cmd.Env = processEnv()
	out, in := io.Pipe()
	p.cmd.Stdout, p.cmd.Stderr = in, in
	p.cmd.WaitDelay = 10 * time.Second
	wait, err := testrun.Start(p.cmd)
	if err != nil {
		t.Fatalf("starting %s: %v", name, err)
	}
	go p.read(out)
	go func() {
		p.err = wait()
		in.Close()
		close(p.done)
	}()
	t.Cleanup(func() {
		p.kill()
		if t.Failed() {
			t.Logf("the last lines of %s:\n%s", name, p.tail(25))
		}
	})
	return p
}

// processEnv is this environment without variables that would configure Trawl or git.
func processEnv() []string {
	var env []string
	for _, line := range os.Environ() {
		if !strings.HasPrefix(line, "TRAWL_") && !strings.HasPrefix(line, "GIT_") {
			env = append(env, line)
		}
	}
	return env
}

func (p *process) read(r io.Reader) {
	br := bufio.NewReader(r)
	for {
		line, err := br.ReadString('\n')
		p.mu.Lock()
		if line != "" {
			p.lines = append(p.lines, strings.TrimSpace(line))
		}
		close(p.changed)
		p.changed = make(chan struct{})
		p.mu.Unlock()
		if err != nil {
			return
		}
	}
}

func (p *process) tail(n int) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return strings.Join(p.lines[max(0, len(p.lines)-n):], "\n")
}

// count counts the lines that hold text.
func (p *process) count(text string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := 0
	for _, line := range p.lines {
		if strings.Contains(line, text) {
			n++
		}
	}
	return n
}

// await waits for a line that find accepts and returns find's result.
func await[T any](t *testing.T, p *process, what string, find func(line string) (T, bool)) T {
	t.Helper()
	deadline := time.After(patience)
	for seen := 0; ; {
		p.mu.Lock()
		lines, changed := p.lines[seen:], p.changed
		p.mu.Unlock()
		for _, line := range lines {
			if v, ok := find(line); ok {
				return v
			}
		}
		seen += len(lines)
		select {
		case <-changed:
		case <-p.done:
			t.Fatalf("%s ended (%v) before it said %s:\n%s", p.name, p.err, what, p.tail(40))
		case <-deadline:
			t.Fatalf("%s never said %s:\n%s", p.name, what, p.tail(40))
		}
	}
}

// serving is the log line in which a role reports where it listens.
type serving struct {
	Message string `json:"msg"`
	GRPC    string `json:"grpc"`
	HTTP    string `json:"http"`
}

// addresses waits until a role has logged where it listens.
func (p *process) addresses(t *testing.T) serving {
	t.Helper()
	return await(t, p, "where it listens", func(line string) (serving, bool) {
		var s serving
		return s, json.Unmarshal([]byte(line), &s) == nil && s.Message == "serving"
	})
}

// kill ends the process at once, as a crash would.
func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	<-p.done
}

// stop asks the process to end and waits until it has.
func (p *process) stop(t *testing.T) {
	t.Helper()
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		t.Fatalf("stopping %s: %v", p.name, err)
	}
	select {
	case <-p.done:
		if p.err != nil {
			t.Errorf("%s was asked to stop and ended with %v:\n%s", p.name, p.err, p.tail(40))
		}
	case <-time.After(patience):
		t.Fatalf("%s does not stop:\n%s", p.name, p.tail(40))
	}
}

// running reports whether the process has not ended.
func (p *process) running() bool {
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

// command runs the binary to its end and returns its outputs and exit status.
func command(t *testing.T, args ...string) (stdout, stderr string, exit int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, trawlBinary, args...)
	cmd.Env = processEnv()
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	if exited := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exited) {
		t.Fatalf("trawl %v: %v", args, err)
	}
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}
