package cli

import (
	"fmt"
	"os"
	"regexp"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
	"github.com/spf13/pflag"
)

// newMan is a hidden command for packagers of Trawl.
func newMan() *cobra.Command {
	return &cobra.Command{
		Use:    "man FOLDER",
		Short:  "Write a manual page of each command into a folder",
		Args:   named(cobra.ExactArgs(1)),
		Hidden: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := os.MkdirAll(args[0], 0o755); err != nil {
				return fmt.Errorf("making the folder of the manual pages: %w", err)
			}
			cmd.Root().DisableAutoGenTag = true // the same pages from the same commit
			escapeMarkdown(cmd.Root())
			header := &doc.GenManHeader{Section: "1", Source: "Trawl " + Version(), Manual: "Trawl"}
			if err := doc.GenManTree(cmd.Root(), header, args[0]); err != nil {
				return fmt.Errorf("writing the manual pages: %w", err)
			}
			return nil
		},
	}
}

var markdown = regexp.MustCompile(`[\\*_<\[]`)

// escapeMarkdown escapes the texts of a command and of those below it. The generator takes them for Markdown, in which backslashes, stars and
// underscores would be lost. Lines that begin with two spaces, which are examples and tables, become blocks of code: these are taken as they are.
func escapeMarkdown(cmd *cobra.Command) {
	escape := func(text string) string { return markdown.ReplaceAllString(text, `\$0`) }
	lines := strings.Split(cmd.Long, "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, "  ") {
			lines[i] = "  " + line
		} else {
			lines[i] = escape(line)
		}
	}
	cmd.Short, cmd.Long = escape(cmd.Short), strings.Join(lines, "\n")
	cmd.NonInheritedFlags().VisitAll(func(f *pflag.Flag) { f.Usage = escape(f.Usage) })
	for _, sub := range cmd.Commands() {
		escapeMarkdown(sub)
	}
}
