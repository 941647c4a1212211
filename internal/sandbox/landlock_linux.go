package sandbox

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	landlock "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"
)

// errNoLandlock means that the kernel has no Landlock, or that a container forbids it.
var errNoLandlock = errors.New("the kernel has no Landlock, so files and ports are not confined")

// system are the files that programs need to run, to check certificates and to know names.
// /proc is not among them, and of /etc only what holds no secrets.
var system = []string{
	"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/opt", "/nix/store", "/gnu/store",
	"/etc/alternatives", "/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/localtime",
	"/etc/ssl", "/etc/pki/tls", "/etc/pki/ca-trust", "/etc/ca-certificates", "/etc/crypto-policies", "/etc/gnutls",
	"/etc/passwd", "/etc/group", "/etc/nsswitch.conf", "/etc/hosts", "/etc/host.conf", "/etc/gai.conf",
	"/etc/services", "/etc/protocols", "/dev/urandom", "/dev/random", "/dev/zero",
}

// Access rights: those that apply to files other than folders, and those for reading and
// writing.
const (
	toFile  = landlock.AccessFSExecute | landlock.AccessFSWriteFile | landlock.AccessFSReadFile | landlock.AccessFSTruncate
	toRead  = landlock.AccessFSExecute | landlock.AccessFSReadFile | landlock.AccessFSReadDir
	toWrite = toRead | landlock.AccessFSWriteFile | landlock.AccessFSTruncate | landlock.AccessFSRemoveDir |
		landlock.AccessFSRemoveFile | landlock.AccessFSMakeDir | landlock.AccessFSMakeReg | landlock.AccessFSRefer
)

// handled returns the rights that a version of Landlock can deny.
func handled(version int) (attr landlock.RulesetAttr) {
	attr.HandledAccessFS = landlock.AccessFSRefer - 1 // all rights below it
	if version >= 2 {
		attr.HandledAccessFS |= landlock.AccessFSRefer
	}
	if version >= 3 {
		attr.HandledAccessFS |= landlock.AccessFSTruncate
	}
	if version >= 4 {
		attr.HandledAccessNet = landlock.AccessNetBindTCP | landlock.AccessNetConnectTCP
	}
	if version >= 5 {
		attr.HandledAccessFS |= landlock.AccessFSIoctlDev
	}
	if version >= 6 {
		attr.Scoped = landlock.ScopeAbstractUnixSocket | landlock.ScopeSignal
	}
	return attr
}

// landlock confines this thread to the files and ports of the box, as far as the kernel
// supports that.
func (b *Box) landlock(program string) error {
	version, err := landlock.LandlockGetABIVersion()
	if err != nil || version < 1 {
		return errNoLandlock
	}
	attr := handled(version)
	ruleset, err := landlock.LandlockCreateRuleset(&attr, 0)
	if err != nil {
		return fmt.Errorf("make a ruleset: %w", err)
	}
	defer func() { _ = unix.Close(ruleset) }() // the thread keeps it
	readable := slices.Concat(system, []string{filepath.Dir(program)}, b.Read)
	for _, path := range readable {
		err := allowBeneath(ruleset, path, toRead&attr.HandledAccessFS)
		if err != nil && !errors.Is(err, unix.ENOENT) {
			return err
		}
	}
	for _, path := range append([]string{"/dev/null"}, b.Write...) {
		if err := allowBeneath(ruleset, path, toWrite&attr.HandledAccessFS); err != nil {
			return err
		}
	}
	for _, port := range b.Ports {
		if attr.HandledAccessNet == 0 {
			break
		}
		rule := landlock.NetPortAttr{AllowedAccess: landlock.AccessNetConnectTCP, Port: uint64(port)}
		if err := landlock.LandlockAddNetPortRule(ruleset, &rule, 0); err != nil {
			return fmt.Errorf("allow port %d: %w", port, err)
		}
	}
	return landlock.LandlockRestrictSelf(ruleset, 0)
}

// allowBeneath adds a rule for a file, or for a folder and what is below it.
func allowBeneath(ruleset int, path string, access uint64) error {
	fd, err := restart(func() (int, error) { return unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0) })
	if err != nil {
		return fmt.Errorf("allow %s: %w", path, err)
	}
	defer func() { _ = unix.Close(fd) }() // nothing was written
	var stat unix.Stat_t
	if err := unix.Fstat(fd, &stat); err != nil {
		return fmt.Errorf("allow %s: %w", path, err)
	}
	if stat.Mode&unix.S_IFMT != unix.S_IFDIR {
		access &= toFile
	}
	rule := landlock.PathBeneathAttr{AllowedAccess: access, ParentFd: fd}
	if err := landlock.LandlockAddPathBeneathRule(ruleset, &rule, 0); err != nil {
		return fmt.Errorf("allow %s: %w", path, err)
	}
	return nil
}

// restart repeats a system call that a signal interrupted.
func restart(call func() (int, error)) (int, error) {
	for {
		if n, err := call(); !errors.Is(err, unix.EINTR) {
			return n, err
		}
	}
}
