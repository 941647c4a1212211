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

// hardened is configuration that every run of git gets. The user's and the
// machine's files are not read at all, see gitEnv.
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
	// A pack stays a pack: loose objects are slow to read.
	{"fetch.unpackLimit", "1"},
	{"http.lowSpeedLimit", "1000"},
	{"http.lowSpeedTime", "60"},
}

// harmless are checks of fsck that old but sound repositories fail: the form of
// names and dates in commits, and modes with a leading zero.
var harmless = []string{
	"badDate", "badDateOverflow", "badEmail", "badTimezone", "missingEmail", "missingNameBeforeEmail",
	"missingSpaceBeforeDate", "missingSpaceBeforeEmail", "multipleAuthors", "nullSha1", "zeroPaddedDate",
	"zeroPaddedFilemode",
}

// killGrace is how long a killed group may take to let go of its pipes.
const killGrace = 5 * time.Second

// gitEnv is the whole environment of a run of git: nothing of ours is passed on
// but where programs, temporary files and certificates are.
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

// gitCommand prepares a run of git as the leader of a process group of its own,
// all of which is killed when the context ends. Configuration goes by the
// environment, since anyone on the machine can read a command line.
func gitCommand(ctx context.Context, env []string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Env = env
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = killGrace
	return cmd
}

// finish waits for a started command, then kills and reaps what it left behind.
func finish(ctx context.Context, cmd *exec.Cmd) error {
	err := cmd.Wait()
	reapGroup(cmd.Process.Pid)
	if cause := context.Cause(ctx); cause != nil && err != nil {
		return cause
	}
	return err
}

// reapGroup ends the rest of a process group whose leader is gone. Its members
// become children of init; when that is this process, as in a container, it is
// this process that must collect them, or they stay as zombies.
func reapGroup(group int) {
	_ = syscall.Kill(-group, syscall.SIGKILL) // no such group: nothing was left
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

// GitVersion returns the version line of the git that would be run.
func GitVersion(ctx context.Context) (string, error) {
	out, err := gitCommand(ctx, gitEnv(nil), "version").Output()
	if err != nil {
		return "", fmt.Errorf("running git version: %w", err)
	}
	return string(out[:max(0, len(out)-1)]), nil
}
