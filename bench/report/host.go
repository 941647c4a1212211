package report

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// Host writes where and how a run was made: the commit, the machine and its load, the Go
// version and the flags.
func Host(ctx context.Context, w io.Writer, flags []string) {
	fmt.Fprintf(w, "  commit    %s\n  machine   %s\n  load      %s (other work on the machine counts)\n  go        %s\n  flags     %s\n",
		commit(ctx), machine(), load(), runtime.Version(), strings.Join(flags, " "))
}

func commit(ctx context.Context) string {
	out, err := exec.CommandContext(ctx, "git", "describe", "--always", "--dirty", "--abbrev=12").Output()
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(out))
}

// machine returns the name of the processor, if the system reports it.
func machine() string {
	model := "unknown processor"
	if text, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		for line := range strings.Lines(string(text)) {
			if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == "model name" {
				model = strings.TrimSpace(value)
				break
			}
		}
	}
	return fmt.Sprintf("%s/%s, %d processors, %s", runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), model)
}

func load() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	return strings.Join(strings.Fields(string(text))[:3], " ")
}

// Save writes a result into the folder. The name of each file has the start time of the
// run, the name, and a suffix such as ".txt". It returns the path without the suffix.
func Save(folder, name string, started time.Time, files map[string][]byte) (stem string, err error) {
	stem = filepath.Join(folder, started.UTC().Format("2006-01-02-150405")+"-"+name)
	if err := os.MkdirAll(folder, 0o777); err != nil {
		return "", fmt.Errorf("making the folder of results: %w", err)
	}
	for suffix, data := range files {
		if err := os.WriteFile(stem+suffix, data, 0o666); err != nil {
			return "", fmt.Errorf("writing the results: %w", err)
		}
	}
	return stem, nil
}
