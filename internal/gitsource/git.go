package gitsource

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"syscall"
	"time"
)

// hardened is the configuration of every run of git. Git does not read the user's and
// the machine's configuration, see gitEnv.
var hardened = [][2]string{
	{"protocol.allow", "never"},
	{"core.hooksPath", "/dev/null"},
	{"core.fsmonitor", "false"},
	{"core.attributesFile", "/dev/null"},
	{"credential.helper", ""},
	{"submodule.recurse", "false"},
	{"fetch.recurseSubmodules", "false"},
	{"gc.auto", "0"},
	{"maintenance.auto", "false"},
	{"transfer.fsckObjects", "true"},
	{"transfer.credentialsInUrl", "die"},
	// Keep packs: loose objects are slow to read.
	{"fetch.unpackLimit", "1"},
	{"http.lowSpeedLimit", "1000"},
	{"http.lowSpeedTime", "60"},
}

// harmless are fsck checks that old but sound repositories fail: the form of names and
// dates in commits, and modes with a leading zero.
var harmless = []string{
	"badDate", "badDateOverflow", "badEmail", "badTimezone", "missingEmail", "missingNameBeforeEmail",
	"missingSpaceBeforeDate", "missingSpaceBeforeEmail", "multipleAuthors", "nullSha1", "zeroPaddedDate",
	"zeroPaddedFilemode",
}

// killGrace bounds the wait for a killed process group to close its pipes.
const killGrace = 5 * time.Second

// gitEnv returns the environment of a run of git. It takes over only the locations of
// programs, temporary files and certificates from this process.
func gitEnv(config [][2]string) []string {
	env := []string{
		"LC_ALL=C", "HOME=/nonexistent", "XDG_CONFIG_HOME=/nonexistent",
		"GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_SYSTEM=/dev/null", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_ATTR_NOSYSTEM=1",
		"GIT_TERMINAL_PROMPT=0", "GIT_NO_REPLACE_OBJECTS=1", "GIT_NO_LAZY_FETCH=1", "GIT_OPTIONAL_LOCKS=0",
	}
	for _, name := range []string{"PATH", "TMPDIR", "SSL_CERT_FILE", "SSL_CERT_DIR"} {
		if v, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+v)
		}
	}
	all := slices.Concat(hardened, config)
	for _, id := range harmless {
		all = append(all, [2]string{"fetch.fsck." + id, "ignore"})
	}
	for i, kv := range all {
		n := strconv.Itoa(i)
		env = append(env, "GIT_CONFIG_KEY_"+n+"="+kv[0], "GIT_CONFIG_VALUE_"+n+"="+kv[1])
	}
	return append(env, "GIT_CONFIG_COUNT="+strconv.Itoa(len(all)))
}

// gitCommand prepares a run of git in a process group of its own, which is killed when
// ctx ends. Configuration is passed in the environment, since other users of the machine
// can read a command line.
func gitCommand(ctx context.Context, env []string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Env = env
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = killGrace
	return cmd
}

// finish waits for a started command, then kills and reaps its remaining children.
func finish(ctx context.Context, cmd *exec.Cmd) error {
	err := cmd.Wait()
	reapGroup(cmd.Process.Pid)
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

// GitVersion returns the version line of the installed git.
func GitVersion(ctx context.Context) (string, error) {
	out, err := gitCommand(ctx, gitEnv(nil), "version").Output()
	if err != nil {
		return "", fmt.Errorf("run git version: %w", err)
	}
	return string(out[:max(0, len(out)-1)]), nil
}
