package sandbox_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"github.com/trawl-search/trawl/internal/sandbox"
)

// TestMain is also the program in the box: it does the one thing that its arguments
// name.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "child" {
		if err := child(os.Args[2], os.Args[3:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

func child(what string, args []string) error {
	switch what {
	case "allocate": // like a program in C; the race detector has a message of its own
		for range 64 << 10 {
			if _, err := unix.Mmap(-1, 0, 1<<20, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS); err != nil {
				return fmt.Errorf("allocate: %w", err)
			}
		}
		return nil
	case "spin": // Go itself ignores the signal that ends others
		return syscall.Exec("/bin/sh", []string{"sh", "-c", "while :; do :; done"}, nil)
	case "sleep":
		time.Sleep(time.Hour)
	case "read":
		_, err := os.ReadFile(args[0])
		return err
	case "write":
		return os.WriteFile(args[0], bytes.Repeat([]byte{'x'}, 1<<20), 0o600)
	case "dial":
		conn, err := net.Dial(args[0], args[1])
		if err == nil {
			_, err = conn.Write([]byte("x")) // a datagram has no handshake
		}
		return err
	case "multipath":
		_, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 262)
		return err
	case "trace":
		tid, err := strconv.Atoi(args[0])
		if err != nil {
			return err
		}
		return unix.PtraceAttach(tid)
	case "stop":
		tgid, err1 := strconv.Atoi(args[0])
		tid, err2 := strconv.Atoi(args[1])
		return errors.Join(err1, err2, unix.Tgkill(tgid, tid, unix.SIGCONT))
	case "look":
		_, err := fmt.Println(os.Args[3:], os.Environ())
		return err
	}
	return fmt.Errorf("unknown: %s", what)
}

// run runs the child in a box and returns its output and error.
func run(t *testing.T, box *sandbox.Box, args ...string) (string, error) {
	t.Helper()
	cmd := command(t, args...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	p, err := box.Start(cmd)
	if err != nil {
		t.Fatal(err)
	}
	err = p.Wait(t.Context())
	return out.String(), sandbox.Explain(err, out.String())
}

func command(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self, append([]string{"child"}, args...)...)
	cmd.Env = []string{"GOMAXPROCS=2"}
	return cmd
}

// confined skips a test where the kernel cannot confine.
func confined(t *testing.T) {
	t.Helper()
	if err := sandbox.Support(); err != nil {
		t.Skip(err)
	}
}

func TestLimits(t *testing.T) {
	dir := t.TempDir()
	for _, c := range []struct {
		want sandbox.Limit
		box  sandbox.Box
		args []string
	}{
		{sandbox.Memory, sandbox.Box{Memory: 4 << 30}, []string{"allocate"}}, // the race detector takes more than 256 MiB
		{sandbox.CPU, sandbox.Box{CPU: time.Second}, []string{"spin"}},
		{sandbox.FileSize, sandbox.Box{Write: []string{dir}, FileSize: 1 << 10}, []string{"write", filepath.Join(dir, "x")}},
		{sandbox.FileSize, sandbox.Box{Write: []string{dir}}, []string{"write", filepath.Join(dir, "y")}},
	} {
		out, err := run(t, &c.box, c.args...)
		limit, ok := errors.AsType[*sandbox.LimitError](err)
		if !ok || limit.Limit != c.want {
			t.Errorf("%v: got %v, want %v; it said %.300s", c.args, err, c.want, out)
		}
	}
}

func TestFiles(t *testing.T) {
	confined(t)
	inside, beside := t.TempDir(), filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(beside, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(inside, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	reader := sandbox.Box{Read: []string{inside}, FileSize: 2 << 20}
	writer := sandbox.Box{Write: []string{inside}, FileSize: 2 << 20}
	for _, c := range []struct {
		box  *sandbox.Box
		what string
		path string
		want bool
	}{
		{&reader, "read", file, true},
		{&reader, "write", file, false},
		{&reader, "read", beside, false},
		{&reader, "read", "/etc/shadow", false},
		{&reader, "read", fmt.Sprintf("/proc/%d/environ", os.Getpid()), false},
		{&writer, "read", file, true},
		{&writer, "write", file, true},
		{&writer, "write", filepath.Join(inside, "new"), true},
		{&writer, "write", beside, false},
		{&writer, "write", filepath.Join(filepath.Dir(beside), "new"), false},
	} {
		out, err := run(t, c.box, c.what, c.path)
		if (err == nil) != c.want {
			t.Errorf("%s %s: %v; it said %s", c.what, c.path, err, out)
		}
	}
}

func TestNetwork(t *testing.T) {
	confined(t)
	var config net.ListenConfig
	allowed, err1 := config.Listen(t.Context(), "tcp", "127.0.0.1:0")
	other, err2 := config.Listen(t.Context(), "tcp", "127.0.0.1:0")
	datagrams, err3 := config.ListenPacket(t.Context(), "udp", "127.0.0.1:0")
	socket := filepath.Join(t.TempDir(), "socket")
	local, err4 := config.Listen(t.Context(), "unix", socket)
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		t.Fatal(err)
	}
	defer allowed.Close()
	defer other.Close()
	defer datagrams.Close()
	defer local.Close()
	none := &sandbox.Box{Read: []string{filepath.Dir(socket)}}
	one := &sandbox.Box{Read: none.Read, Ports: []uint16{uint16(allowed.Addr().(*net.TCPAddr).Port)}}
	for _, c := range []struct {
		box  *sandbox.Box
		want bool
		args []string
	}{
		{one, true, []string{"dial", "tcp", allowed.Addr().String()}},
		{one, false, []string{"dial", "tcp", other.Addr().String()}},
		{one, false, []string{"dial", "udp", datagrams.LocalAddr().String()}},
		{one, false, []string{"dial", "unix", socket}},
		{one, false, []string{"multipath"}},
		{none, false, []string{"dial", "tcp", allowed.Addr().String()}},
		{none, false, []string{"dial", "udp", datagrams.LocalAddr().String()}},
		{none, false, []string{"dial", "unix", socket}},
	} {
		if out, err := run(t, c.box, c.args...); (err == nil) != c.want {
			t.Errorf("%d ports, %v: %v; it said %s", len(c.box.Ports), c.args, err, out)
		}
	}
}

// TestThisProcess: a program cannot reach the process that started it. It tries every
// thread, one of which has the program's own Landlock domain.
func TestThisProcess(t *testing.T) {
	confined(t)
	sleeping, err := (&sandbox.Box{}).Start(command(t, "sleep"))
	if err != nil {
		t.Fatal(err)
	}
	pid := strconv.Itoa(os.Getpid())
	threads, err := os.ReadDir("/proc/self/task")
	if err != nil {
		t.Fatal(err)
	}
	refused := regexp.MustCompile("permitted|denied|no such process") // the last: the thread has ended
	for _, thread := range threads {
		for _, args := range [][]string{{"trace", thread.Name()}, {"stop", pid, thread.Name()}} {
			if out, err := run(t, &sandbox.Box{}, args...); err == nil || !refused.MatchString(out) {
				t.Errorf("%v: %v; it said %s", args, err, out)
			}
		}
	}
	end(t, sleeping)
}

// end kills a program and waits for it.
func end(t *testing.T, p *sandbox.Process) {
	t.Helper()
	p.Kill()
	limit, ok := errors.AsType[*sandbox.LimitError](sandbox.Explain(p.Wait(t.Context()), ""))
	if !ok || limit.Limit != sandbox.Machine {
		t.Errorf("a killed program ended with %v", limit)
	}
}

// TestGetsWhatWasGiven: the program gets its arguments, input and environment, and
// nothing of this process's environment.
func TestGetsWhatWasGiven(t *testing.T) {
	t.Setenv("TRAWL_TOKEN", "secret")
	out, err := run(t, &sandbox.Box{}, "look", "a b", "$HOME", `"'`)
	if err != nil || !strings.Contains(out, `[a b $HOME "']`) || strings.Contains(out, "secret") || !strings.Contains(out, "GOMAXPROCS=2") {
		t.Errorf("%v: %s", err, out)
	}
}

func TestNoSuchProgram(t *testing.T) {
	if _, err := (&sandbox.Box{}).Start(exec.CommandContext(t.Context(), "no-such-program")); !errors.Is(err, exec.ErrNotFound) {
		t.Error(err)
	}
}

// TestPriority: the kernel kills the program before this process.
func TestPriority(t *testing.T) {
	p, err := (&sandbox.Box{}).Start(command(t, "sleep"))
	if err != nil {
		t.Fatal(err)
	}
	score, err := os.ReadFile(fmt.Sprintf("/proc/%d/oom_score_adj", p.Pid()))
	if err != nil || strings.TrimSpace(string(score)) != "800" {
		t.Errorf("%s: %v", score, err)
	}
	end(t, p)
}

// TestDiesWithItsParent kills a process that runs a program in a box.
func TestDiesWithItsParent(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	parent := exec.CommandContext(t.Context(), self, "-test.run=^TestIsAParent$")
	parent.Env = append(os.Environ(), "TRAWL_TEST_PARENT=yes")
	out, err := parent.StdoutPipe()
	if err == nil {
		err = parent.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	var pid int
	if _, err := fmt.Fscanf(out, "%d\n", &pid); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, 0); err != nil {
		t.Fatal(err)
	}
	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, out) // the program holds the other end of it
	_ = parent.Wait()
}

// TestIsAParent is the process that TestDiesWithItsParent kills.
func TestIsAParent(t *testing.T) {
	if os.Getenv("TRAWL_TEST_PARENT") == "" {
		t.Skip("for TestDiesWithItsParent")
	}
	cmd := command(t, "sleep")
	cmd.Stdout = os.Stdout
	p, err := (&sandbox.Box{}).Start(cmd)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Println(p.Pid())
	_ = p.Wait(t.Context())
}

// BenchmarkStart measures what a box costs compared with a bare program.
func BenchmarkStart(b *testing.B) {
	b.Run("box", func(b *testing.B) {
		for b.Loop() {
			p, err := (&sandbox.Box{}).Start(exec.CommandContext(b.Context(), "git", "version"))
			if err == nil {
				err = p.Wait(b.Context())
			}
			if err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("bare", func(b *testing.B) {
		for b.Loop() {
			if err := exec.CommandContext(b.Context(), "git", "version").Run(); err != nil {
				b.Fatal(err)
			}
		}
	})
}
