// Package cli is the command line of Trawl: one subcommand per role, one for
// all roles in one process, and the tools of people who search.
package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Process is a command's view of the process it runs in.
type Process struct {
	// In is nil for processes that read nothing.
	In       io.Reader
	Out, Err io.Writer
	// Environ holds "NAME=value" lines, as os.Environ returns them.
	Environ []string
}

// Run runs the command line args (without the program's name) until it is done
// or ctx ends, and returns the exit status: 0, 1 for an error, 2 for a command
// line that cannot be understood. A search has its own: 1 if it finds nothing, 2 for any error.
func Run(ctx context.Context, args []string, p Process) int {
	root := newRoot(p, args...)
	root.SetArgs(append([]string{}, args...)) // with nil, cobra takes those of the process
	root.SetOut(p.Out)
	root.SetErr(p.Err)
	strict(root, args)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return 0
	}
	end := exitStatus{1, err}
	switch {
	case errors.As(err, new(usageError)):
		end.status = 2
	default:
		errors.As(err, &end)
	}
	if end.err != nil {
		fmt.Fprintf(p.Err, "trawl: %s\n", explain(cmp.Or(interruption(ctx, end.err), beyondUTF8(args, end.err), end.err)))
	}
	return end.status
}

// interruption is why ctx ended, such as the signal that was received, if err comes from that; nil if it has another cause.
func interruption(ctx context.Context, err error) error {
	if !errors.Is(err, context.Canceled) && status.Code(err) != codes.Canceled {
		return nil
	}
	return context.Cause(ctx)
}

// exitStatus is the status of a command that has its own, with or without an error.
type exitStatus struct {
	status int
	err    error
}

// Error implements error.
func (e exitStatus) Error() string {
	if e.err == nil {
		return fmt.Sprintf("status %d", e.status)
	}
	return e.err.Error()
}

// Unwrap returns the error, nil if there is none.
func (e exitStatus) Unwrap() error { return e.err }

// usageError is a command line that cannot be understood.
type usageError struct{ error }

// Unwrap returns what is wrong with it.
func (e usageError) Unwrap() error { return e.error }

// newRoot returns all commands, or at least the one that args begin with.
func newRoot(p Process, args ...string) *cobra.Command {
	version := false
	root := &cobra.Command{
		Use:   "trawl",
		Short: "Search all your code",
		Long: `Trawl searches the code of many Git repositories by substring and regular expression.

Start everything on this machine:   trawl up --data-dir ~/trawl-data
Index a repository:                 trawl index https://github.com/org/name
Search it:                          trawl search 'func main lang:go'`,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          usageArgs(knownCommand),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if version {
				return printVersion(p)
			}
			return cmd.Help()
		},
	}
	root.Flags().BoolVar(&version, "version", false, "print the version")
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error { return flagError(cmd, args, err) })
	const use, serve, tools = "use", "serve", "tools"
	root.AddGroup(
		&cobra.Group{ID: use, Title: "Search and index:"},
		&cobra.Group{ID: serve, Title: "Serve:"},
		&cobra.Group{ID: tools, Title: "Without any service:"},
	)
	add := func(group string, commands ...*cobra.Command) {
		for _, c := range commands {
			c.GroupID = group
			root.AddCommand(c)
		}
	}
	add(use, newSearch(p), newDef(p), newRefs(p), newCat(p), newOpen(p), newIndex(p), newRepos(p), newDelete(p), newSources(p), newJobs(p), newSearchers(p), newLimits(p), newMCP(p))
	add(tools, newGrep(p), newShard(p), newVersion(p))
	// It takes a millisecond to declare the settings of the roles, too long for a search that does not need them.
	if len(args) > 0 && slices.ContainsFunc(root.Commands(), func(c *cobra.Command) bool { return c.Name() == args[0] }) {
		return root
	}
	add(serve, newUp(p), newIndexer(p), newSearcher(p), newRouter(p), newCanary(p), newTokens(p), newGC(p), newRestore(p), newSelfTest(p))
	add(tools, newMan())
	return root
}

// strict has the commands that cobra makes, help and completion, refuse what they do not know. As they come they print
// some help, and succeed.
func strict(root *cobra.Command, args []string) {
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd(args...)
	for _, c := range root.Commands() {
		switch c.Name() {
		case "help":
			c.Run, c.RunE = nil, help
		case "completion":
			withSubcommands(c)
		}
	}
}

// help prints the help of the command that args name.
func help(cmd *cobra.Command, args []string) error {
	found, unknown, err := cmd.Root().Find(args)
	if err == nil {
		err = usageArgs(knownCommand)(found, unknown)
	}
	if err != nil {
		return err
	}
	found.InitDefaultHelpFlag()
	return found.Help()
}

// withSubcommands gives a command those below it. By itself it prints its help.
func withSubcommands(cmd *cobra.Command, below ...*cobra.Command) *cobra.Command {
	cmd.Args = usageArgs(knownCommand)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	cmd.AddCommand(below...)
	return cmd
}

// usageArgs marks errors of an argument check as errors of usage.
func usageArgs(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if err := check(cmd, args); err != nil {
			return usageError{fmt.Errorf("%w; see %s --help", inWords(err, cmd, args), cmd.CommandPath())}
		}
		return nil
	}
}

// named is usageArgs for arguments that name something. It refuses an empty one, such as a variable that is not set.
func named(check cobra.PositionalArgs) cobra.PositionalArgs {
	return usageArgs(func(cmd *cobra.Command, args []string) error {
		if err := check(cmd, args); err != nil || !slices.Contains(args, "") {
			return err
		}
		_, want, _ := strings.Cut(cmd.Use, " ")
		return fmt.Errorf("an argument is empty: want %s", want)
	})
}

// inWords says of an error of cobra about the number of arguments which ones are wanted, rather than how many.
func inWords(err error, cmd *cobra.Command, args []string) error {
	_, want, ok := strings.Cut(cmd.Use, " ")
	if !ok || !strings.Contains(err.Error(), "arg(s)") {
		return err
	}
	got := "nothing"
	if len(args) > 0 {
		got = fmt.Sprintf("%q", args)
	}
	return fmt.Errorf("want %s, got %s", want, got)
}

// isTerminal reports whether w is a terminal, or a pager on one.
func isTerminal(w io.Writer) bool {
	if _, ok := w.(pageable); ok {
		return true
	}
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// env returns the value of a variable, "" where it is not set.
func (p Process) env(name string) string {
	for _, line := range p.Environ {
		if value, ok := strings.CutPrefix(line, name+"="); ok {
			return value
		}
	}
	return ""
}

// useColor decides for --color: auto means on a terminal, unless NO_COLOR is set.
func (p Process) useColor(when string) (bool, error) {
	use, err := p.forTerminal("--color", when)
	return use && (when == "always" || p.env("NO_COLOR") == ""), err
}

// forTerminal resolves a flag for terminal features: auto means on if the output is a
// terminal.
func (p Process) forTerminal(flag, when string) (bool, error) {
	switch when {
	case "always":
		return true, nil
	case "never":
		return false, nil
	case "auto":
		return isTerminal(p.Out) && p.env("TERM") != "dumb", nil
	}
	return false, usageError{fmt.Errorf("%s is %q: want auto, always or never", flag, when)}
}
