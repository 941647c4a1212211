package sandbox

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// errNoFilter means that this package has no filter for the processor.
var errNoFilter = errors.New("system calls are filtered on amd64 and arm64 only, so UDP is not confined")

// Offsets in a filter's view of a system call (struct seccomp_data), in bytes. The
// filter loads the lower half of an argument of 64 bits, which comes first on both
// processors.
const (
	offsetNumber = 0
	offsetArch   = 4
	offsetArgs   = 16
)

// x32 marks the numbers of another set of system calls on amd64.
const x32 = 0x4000_0000

// filterCalls filters the system calls of this thread and of all that it starts.
//
// It denies calls that would reach this process: tracing, reading memory, taking files and
// sending signals. Landlock does not deny them, since the thread that started the program
// has the program's own Landlock domain. Of sockets it allows only TCP, or none: Landlock
// does not confine other protocols, nor TCP before its version 4.
func filterCalls(network bool) error {
	if arch == 0 {
		return errNoFilter
	}
	var f filter
	f.load(offsetArch)
	f.unless(arch)
	f.load(offsetNumber)
	f.add(unix.BPF_JMP|unix.BPF_JGE|unix.BPF_K, 0, 1, x32)
	f.deny()
	for _, call := range []uint32{
		unix.SYS_PTRACE, unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV, unix.SYS_PIDFD_GETFD,
		unix.SYS_PIDFD_SEND_SIGNAL, unix.SYS_TKILL, unix.SYS_IO_URING_SETUP,
	} {
		f.add(unix.BPF_JMP|unix.BPF_JEQ|unix.BPF_K, 0, 1, call)
		f.deny()
	}
	self := uint32(os.Getpid())
	for _, call := range []uint32{unix.SYS_KILL, unix.SYS_TGKILL, unix.SYS_RT_SIGQUEUEINFO, unix.SYS_RT_TGSIGQUEUEINFO} {
		// Load the first argument, compare, and load the number again.
		f.add(unix.BPF_JMP|unix.BPF_JEQ|unix.BPF_K, 0, 5, call)
		f.load(offsetArgs)
		f.add(unix.BPF_JMP|unix.BPF_JEQ|unix.BPF_K, 1, 0, self)
		f.add(unix.BPF_JMP|unix.BPF_JEQ|unix.BPF_K, 0, 1, ^uint32(0)) // -1: all processes
		f.deny()
		f.load(offsetNumber)
	}
	f.add(unix.BPF_JMP|unix.BPF_JEQ|unix.BPF_K, 1, 0, unix.SYS_SOCKET)
	f.allow()
	if network {
		f.load(offsetArgs)
		f.add(unix.BPF_JMP|unix.BPF_JEQ|unix.BPF_K, 2, 0, unix.AF_INET)
		f.unless(unix.AF_INET6)
		f.load(offsetArgs + 8)
		f.add(unix.BPF_ALU|unix.BPF_AND|unix.BPF_K, 0, 0, 0xf) // without SOCK_CLOEXEC and the like
		f.unless(unix.SOCK_STREAM)
		f.load(offsetArgs + 16) // not multipath TCP, which Landlock does not confine
		f.add(unix.BPF_JMP|unix.BPF_JEQ|unix.BPF_K, 2, 0, 0)
		f.unless(unix.IPPROTO_TCP)
		f.allow()
	}
	f.deny()
	program := unix.SockFprog{Len: uint16(len(f)), Filter: &f[0]}
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, uintptr(unsafe.Pointer(&program))) //nolint:gosec // the call takes an address
	if errno != 0 {
		return fmt.Errorf("install the filter: %w", errno)
	}
	return nil
}

// filter is a program of the kernel's packet filter.
type filter []unix.SockFilter

func (f *filter) add(code uint16, ifTrue, ifFalse uint8, k uint32) {
	*f = append(*f, unix.SockFilter{Code: code, Jt: ifTrue, Jf: ifFalse, K: k})
}

func (f *filter) load(offset uint32) { f.add(unix.BPF_LD|unix.BPF_W|unix.BPF_ABS, 0, 0, offset) }

// unless denies the call if the loaded value is not k.
func (f *filter) unless(k uint32) {
	f.add(unix.BPF_JMP|unix.BPF_JEQ|unix.BPF_K, 1, 0, k)
	f.deny()
}

func (f *filter) deny() {
	f.add(unix.BPF_RET|unix.BPF_K, 0, 0, unix.SECCOMP_RET_ERRNO|uint32(unix.EACCES))
}

func (f *filter) allow() { f.add(unix.BPF_RET|unix.BPF_K, 0, 0, unix.SECCOMP_RET_ALLOW) }

// arch is the kernel's name for the processor, 0 if there is no filter for it.
var arch = map[string]uint32{"amd64": unix.AUDIT_ARCH_X86_64, "arm64": unix.AUDIT_ARCH_AARCH64}[runtime.GOARCH]
