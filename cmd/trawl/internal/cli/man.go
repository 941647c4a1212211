package cli

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

// newMan is a hidden command for packagers of Trawl.
func newMan() *cobra.Command {
	return &cobra.Command{
		Use:    "man FOLDER",
		Short:  "Write a manual page of each command into a folder",
		Args:   usageArgs(cobra.ExactArgs(1)),
		Hidden: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := os.MkdirAll(args[0], 0o755); err != nil {
				return fmt.Errorf("making the folder of the manual pages: %w", err)
			}
			cmd.Root().DisableAutoGenTag = true // the same pages from the same commit
			header := &doc.GenManHeader{Section: "1", Source: "Trawl " + Version(), Manual: "Trawl"}
			if err := doc.GenManTree(cmd.Root(), header, args[0]); err != nil {
				return fmt.Errorf("writing the manual pages: %w", err)
			}
			return nil
		},
	}
}
