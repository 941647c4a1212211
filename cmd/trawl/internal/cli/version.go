package cli

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// The linker sets version and builtFrom, a commit. Empty ones are replaced by the build information
// of the Go command.
var version, builtFrom string

// Version is the version of this binary, "dev" where none is known.
func Version() string {
	if version != "" {
		return version
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" && info.Main.Version != "(devel)" {
		return info.Main.Version
	}
	return "dev"
}

// revision is the commit of this binary, "unknown" where none is known.
func revision() string {
	if builtFrom != "" {
		return builtFrom
	}
	info, _ := debug.ReadBuildInfo()
	if info != nil {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				return s.Value
			}
		}
	}
	return "unknown"
}

func newVersion(p Process) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  usageArgs(knownCommand),
		RunE: func(*cobra.Command, []string) error {
			return printVersion(p)
		},
	}
}

func printVersion(p Process) error {
	_, err := fmt.Fprintf(p.Out, "trawl %s (commit %s, %s %s/%s)\n", Version(), revision(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return err
}
