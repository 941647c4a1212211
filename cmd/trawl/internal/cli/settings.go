package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/trawl-search/trawl/internal/config"
)

// configured makes cmd load settings before it runs. With --print-config it
// prints them instead, and fails if they are wrong.
func configured(p Process, cmd *cobra.Command, settings config.Settings, run func(cmd *cobra.Command) error) *cobra.Command {
	return configuredAs(p, cmd, cmd.Name(), settings, run)
}

// configuredAs is configured with another name in the environment variables.
func configuredAs(p Process, cmd *cobra.Command, role string, settings config.Settings, run func(cmd *cobra.Command) error) *cobra.Command {
	set, err := config.Bind(cmd.Flags(), role, settings)
	cmd.Args = usageArgs(knownCommand)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err != nil {
			return err
		}
		wrong := set.Load(p.Environ)
		if set.PrintRequested() { // also where one is missing: the output is where to begin
			if err := config.Print(p.Out, settings); err != nil {
				return err
			}
		}
		switch {
		case wrong != nil:
			return usageError{wrong}
		case set.PrintRequested():
			return nil
		}
		return run(cmd)
	}
	return cmd
}

// wrapRole adds the role to its error.
func wrapRole(role string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", role, err)
}
