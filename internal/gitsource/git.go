package gitsource

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"time"

	"github.com/trawl-search/trawl/internal/sandbox"
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
	// Larger blobs are not indexed, so git need not hold them in memory as a whole.
	{"core.bigFileThreshold", "64m"},
	{"gc.auto", "0"},
	{"maintenance.auto", "false"},
	{"transfer.fsckObjects", "true"},
	{"transfer.credentialsInUrl", "die"},
	// Keep packs: loose objects are slow to read.
	{"fetch.unpackLimit", "1"},
	{"http.lowSpeedLimit", "1000"},
	{"http.lowSpeedTime", "60"},
}

// harmless are the checks of git fsck about what git clones all the same and no index depends
// on: people and dates of commits, the form of tags, modes, and files with a meaning for git alone.
// What remains checks that trees are in order and that their names are names: changes are found by
// comparing trees in order, and a path with a component such as .. names another document.
var harmless = []string{
	"badDate", "badDateOverflow", "badEmail", "badName", "badTimezone", "missingAuthor", "missingCommitter", "missingEmail",
	"missingNameBeforeEmail", "missingSpaceBeforeDate", "missingSpaceBeforeEmail", "multipleAuthors", "nulInCommit", "zeroPaddedDate",
	"badTagName", "extraHeaderEntry", "missingTag", "missingTagEntry", "missingTaggerEntry",
	"badFilemode", "hasDotgit", "nullSha1", "zeroPaddedFilemode",
	"gitattributesBlob", "gitattributesLarge", "gitattributesLineLength", "gitattributesMissing", "gitattributesSymlink",
	"gitmodulesBlob", "gitmodulesLarge", "gitmodulesMissing", "gitmodulesName", "gitmodulesParse", "gitmodulesPath", "gitmodulesSymlink",
	"gitmodulesUpdate", "gitmodulesUrl",
	// Checks of git from 2.41, 2.44 and 2.45 on. Others ignore their names, with a warning.
	"largePathname", "symlinkPointsToGitDir", "symlinkTargetBlob", "symlinkTargetLength", "symlinkTargetMissing",
}

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

// gitCommand prepares a run of git for a box to start. Configuration is passed in the
// environment, since other users of the machine can read a command line.
func gitCommand(ctx context.Context, env []string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Env = env
	cmd.Dir = "/"
	return cmd
}

const (
	// DefaultMemory is the memory of each of git's processes unless another is configured.
	// Fetches are shallow: index-pack meets the objects of one commit for each branch.
	DefaultMemory = 1 << 30
	// minMemory is what git needs to do anything useful.
	minMemory = 64 << 20
	// maxCPU bounds the processor time of each of git's processes. The limit on time
	// nearly always stops them earlier.
	maxCPU = 2 * time.Hour
)

// reading returns a box in which git reads folders, and writes nothing.
func reading(memory int64, folders ...string) *sandbox.Box {
	if memory == 0 {
		memory = DefaultMemory
	}
	return &sandbox.Box{Read: folders, Memory: memory, CPU: maxCPU}
}

// GitVersion returns the version line of the installed git.
func GitVersion(ctx context.Context) (string, error) {
	g := gitRun{box: reading(0), env: gitEnv(nil), maxOutput: maxRecord}
	out, err := g.run(ctx, nil, "version")
	if err != nil {
		return "", fmt.Errorf("run git version: %w", err)
	}
	return string(out[:max(0, len(out)-1)]), nil
}
