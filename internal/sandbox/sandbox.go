// Package sandbox runs programs that read hostile data, such as git, so that a
// compromised program harms only its own job.
//
// A program in a Box can read the system's programs and the box's Read and Write folders,
// and write the latter. It can connect to the box's TCP ports, and to nothing else. Its
// memory, its processor time and the files that it writes are bounded. It gains no
// privileges, leaves no core file, dies with this process, and is killed before this
// process when memory is short.
//
// On Linux the limits of resources always hold. Landlock, if the kernel has it, confines
// files, ports and signals. A seccomp filter, on amd64 and arm64, confines sockets and keeps
// the program away from this process. Support reports what is missing. Other systems are for
// development: there a program is only killed with its children.
//
//	              this process
//	a thread of its own:  Landlock, seccomp ── fork ──▶ a shell, which waits
//	another thread:       limits, priority to be killed ──────▶ │
//	                      "go" ────────────────────────────────▶ │ exec: the program
//
// Landlock and seccomp bind the thread that calls them and everything that it starts, so the
// thread is discarded when the program has ended. Usually a helper program restricts itself
// and then starts the other, but this binary takes thirty times as long to start as git does
// (decision 30).
package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"regexp"
	"syscall"
	"time"

	"github.com/trawl-search/trawl/internal/lazyregexp"
)

// Box is what a program may do. The zero value only lets it read the system's
// programs.
type Box struct {
	// Read names files and folders that it may read, with the programs in them that it
	// may run. Those that do not exist are left out.
	Read []string
	// Write names files and folders that it may read and write. They must exist.
	Write []string
	// Ports are the TCP ports that it may connect to; none: it has no network.
	Ports []uint16
	// Memory bounds the private memory of each of its processes, in bytes; files that are
	// only mapped do not count. 0: not bounded.
	Memory int64
	// CPU bounds the processor time of each of its processes; 0: not bounded.
	CPU time.Duration
	// FileSize bounds each file that it writes, in bytes; 0: it can write none.
	FileSize int64
}

// killGrace bounds the wait for a killed process group to close its pipes.
const killGrace = 5 * time.Second

// Process is a started program.
type Process struct {
	cmd *exec.Cmd
	// ended releases the thread that started the program.
	ended chan struct{}
}

// Start starts a command made by exec.CommandContext, in a process group that is killed as
// a whole when the command's context ends. It changes the command. The caller must call
// Wait.
func (b *Box) Start(cmd *exec.Cmd) (*Process, error) {
	if cmd.Err != nil {
		return nil, cmd.Err
	}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = killGrace
	p := &Process{cmd: cmd, ended: make(chan struct{})}
	if err := b.start(p); err != nil {
		return nil, fmt.Errorf("start %s: %w", cmd.Path, err)
	}
	return p, nil
}

// Pid returns the program's process id, which is also that of its group.
func (p *Process) Pid() int { return p.cmd.Process.Pid }

// Kill kills the program and its children. The caller must still call Wait.
func (p *Process) Kill() { _ = p.cmd.Cancel() } // they may have ended

// Wait waits for the program, then kills and reaps its remaining children. If ctx, which
// must be the command's context, ended, the error is its cause. Otherwise it is that of
// exec.Cmd.Wait.
func (p *Process) Wait(ctx context.Context) error {
	err := p.cmd.Wait()
	close(p.ended)
	reapGroup(p.cmd.Process.Pid)
	if cause := context.Cause(ctx); cause != nil && err != nil {
		return cause
	}
	return err
}

// reapGroup kills the rest of a process group whose leader has ended. Its members become
// children of init. If this process is init, as in a container, it must reap them, or
// they stay as zombies.
func reapGroup(group int) {
	_ = syscall.Kill(-group, syscall.SIGKILL) // fails if the group is empty
	for range 100 {
		pid, err := syscall.Wait4(-group, nil, syscall.WNOHANG, nil)
		switch {
		case err == syscall.EINTR || pid > 0:
		case err != nil:
			return // not ours, or none left
		default:
			time.Sleep(time.Millisecond)
		}
	}
}

// Limit is the limit that ended a program.
type Limit string

// Limits.
const (
	// Memory: it asked for more memory than Box.Memory.
	Memory Limit = "memory"
	// CPU: it took more processor time than Box.CPU.
	CPU Limit = "processor time"
	// FileSize: it wrote a longer file than Box.FileSize.
	FileSize Limit = "file size"
	// Machine: it was killed from outside. Nearly always the kernel does that when the
	// machine or the container runs out of memory, which another program may have taken.
	Machine Limit = "memory of the machine"
)

// LimitError is the error of a program that a limit ended.
type LimitError struct {
	Limit Limit
	Err   error
}

// Error implements error.
func (e *LimitError) Error() string {
	return fmt.Sprintf("ended by the limit of %s: %v", e.Limit, e.Err)
}

// Unwrap returns the error of the program.
func (e *LimitError) Unwrap() error { return e.Err }

// signs are the ways in which a program shows that a limit ended it: by its signal, or by
// its message if the limit ended a child or refused memory.
var signs = []struct {
	limit  Limit
	signal syscall.Signal
	said   func() *regexp.Regexp
}{
	{Memory, 0, lazyregexp.New(`(?i)out of memory|cannot allocate memory|memory exhausted|unable to create thread`)},
	{CPU, syscall.SIGXCPU, lazyregexp.New(fmt.Sprintf(`(?i)died of signal %d\b|CPU time limit exceeded`, syscall.SIGXCPU))},
	{FileSize, syscall.SIGXFSZ, lazyregexp.New(fmt.Sprintf(`(?i)died of signal %d\b|file too large`, syscall.SIGXFSZ))},
	{Machine, syscall.SIGKILL, lazyregexp.New(fmt.Sprintf(`died of signal %d\b`, syscall.SIGKILL))},
}

// Explain makes a *LimitError of a program's failure if a limit caused it, and otherwise
// returns err. Said is what the program wrote to its standard error, in English.
func Explain(err error, said string) error {
	exit, ok := errors.AsType[*exec.ExitError](err)
	if !ok {
		return err
	}
	status, _ := exit.Sys().(syscall.WaitStatus)
	for _, s := range signs {
		if s.signal != 0 && status.Signaled() && status.Signal() == s.signal || s.said().MatchString(said) {
			return &LimitError{s.limit, err}
		}
	}
	return err
}
