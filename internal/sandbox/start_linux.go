package sandbox

import (
	"errors"
	"fmt"
	"math"
	"os"
	"runtime"
	"syscall"

	landlock "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"
)

// gate is the shell's script. It waits for a line, by which time the limits are in
// place, and becomes the program. If this process ends first, it reads nothing and ends.
const gate = `read -r line <&3 || exit 1; exec 3<&-; exec "$0" "$@"`

func (b *Box) start(p *Process) error {
	ready, release, err := os.Pipe()
	if err != nil {
		return err
	}
	defer release.Close()
	p.cmd.Args = append([]string{"sh", "-c", gate, p.cmd.Path}, p.cmd.Args[1:]...)
	program := p.cmd.Path
	p.cmd.Path = "/bin/sh"
	p.cmd.ExtraFiles = []*os.File{ready}
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}

	started := make(chan error, 1)
	go func() {
		// The thread is restricted, so it is never unlocked, and ends with this goroutine.
		// The program would then get its Pdeathsig, so it must end first.
		runtime.LockOSThread()
		err := b.restrictThread(program)
		if err == nil {
			err = p.cmd.Start()
		}
		started <- err
		if err == nil {
			<-p.ended
		}
	}()
	err = <-started
	ready.Close()
	if err != nil {
		return err
	}
	if err = b.limit(p.cmd.Process.Pid); err == nil {
		_, err = release.WriteString("go\n")
	}
	if err != nil {
		p.Kill()
		_ = p.cmd.Wait()
		close(p.ended)
	}
	return err
}

// limit sets the limits of a process. Those of its children are the same.
func (b *Box) limit(pid int) error {
	memory, cpu := uint64(math.MaxUint64), uint64(math.MaxUint64)
	if b.Memory > 0 {
		memory = uint64(b.Memory)
	}
	if b.CPU > 0 {
		cpu = uint64(max(b.CPU.Seconds(), 1)) + 1
	}
	for _, r := range []struct {
		name     string
		resource int
		limit    uint64
	}{
		// Not RLIMIT_AS: git maps packs that are larger than its memory may be.
		{"memory", unix.RLIMIT_DATA, memory},
		{"processor time", unix.RLIMIT_CPU, cpu},
		{"file size", unix.RLIMIT_FSIZE, uint64(b.FileSize)},
		{"core files", unix.RLIMIT_CORE, 0},
		{"open files", unix.RLIMIT_NOFILE, maxOpen},
		// Not RLIMIT_NPROC: it counts all processes of a user on a machine, other pods' too.
	} {
		var have unix.Rlimit
		if err := unix.Prlimit(pid, r.resource, nil, &have); err != nil {
			return fmt.Errorf("read the limit of %s: %w", r.name, err)
		}
		limit := unix.Rlimit{Cur: min(r.limit, have.Max), Max: min(r.limit, have.Max)} // only root could raise the limit
		if r.resource == unix.RLIMIT_CPU && limit.Max < math.MaxUint64 {
			limit.Cur = limit.Max - 1 // first the signal that shows the reason, a second later the kill
		}
		if err := unix.Prlimit(pid, r.resource, &limit, nil); err != nil {
			return fmt.Errorf("limit %s: %w", r.name, err)
		}
	}
	// Some containers forbid this. Then the kernel chooses by size, mostly the same
	// process.
	_ = os.WriteFile(fmt.Sprintf("/proc/%d/oom_score_adj", pid), []byte(killFirst), 0)
	return nil
}

const (
	maxOpen = 1024
	// killFirst makes a program count as larger, by this many thousandths of the memory,
	// when the kernel looks for a process to kill.
	killFirst = "800"
)

// restrictThread confines this thread and everything that it starts. It cannot be
// undone.
func (b *Box) restrictThread(program string) error {
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("give up gaining privileges: %w", err)
	}
	if err := b.landlock(program); err != nil && !errors.Is(err, errNoLandlock) {
		return fmt.Errorf("confine it by Landlock: %w", err)
	}
	if err := filterCalls(len(b.Ports) > 0); err != nil && !errors.Is(err, errNoFilter) {
		return fmt.Errorf("filter its system calls: %w", err)
	}
	return nil
}

// Support reports what keeps programs from being confined entirely, nil if nothing does.
func Support() error {
	version, err := landlock.LandlockGetABIVersion()
	switch {
	case err != nil || version < 1:
		err = errNoLandlock
	case version < 4:
		err = fmt.Errorf("the kernel has version %d of Landlock, which does not confine ports; 4 does", version)
	}
	if arch == 0 {
		err = errors.Join(err, errNoFilter)
	}
	return err
}
