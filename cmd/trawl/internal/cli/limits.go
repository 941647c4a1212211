package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/trawl-search/trawl/cmd/trawl/internal/render"
	adminv1 "github.com/trawl-search/trawl/proto/trawl/admin/v1"
)

func newLimits(p Process) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "limits",
		Short: "List limits, and change them while Trawl runs",
		Long: `List limits, and change them while Trawl runs.

A limit overrides the setting of the same name in every process; without a limit each process has its setting. Limits of callers can
also be set for a single token, as tokens.TOKEN.NAME with its name or ID. A change is in force within five seconds. These
commands need a token with the scope admin for all repos.`,
	}
	return withSubcommands(cmd, newLimitsList(p), newLimitsSet(p), newLimitsUnset(p))
}

func newLimitsList(p Process) *cobra.Command {
	cmd := &cobra.Command{Use: "list", Short: "List the limits, with who set them and when"}
	return listing(p, cmd, func(ctx context.Context, c client, asJSON bool) error {
		resp, err := c.admin.ListLimits(ctx, &adminv1.ListLimitsRequest{})
		if err != nil {
			return err
		}
		if asJSON {
			return printMessages(p.Out, "limits", resp.GetLimits()...)
		}
		return printLimits(p.Out, resp.GetLimits())
	})
}

func printLimits(out io.Writer, limits []*adminv1.Limit) error {
	return table(out, "limits", func(w io.Writer) {
		fmt.Fprintln(w, "NAME\tLIMIT\tSETTING\tSINCE\tBY")
		for _, l := range limits {
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", render.Safe([]byte(l.GetName())), dash(render.Safe([]byte(l.GetValue()))),
				cmp.Or(render.Safe([]byte(l.GetSetting())), "of each indexer"), moment(l.GetSetAt()), dash(render.Safe([]byte(l.GetSetBy()))))
		}
	})
}

func newLimitsSet(p Process) *cobra.Command {
	return limitCommand(p, &cobra.Command{
		Use:   "set NAME VALUE",
		Short: "Set a limit",
		Example: `  trawl limits set repos-per-minute 1200
  trawl limits set tokens.ci.caller-calls 500
  trawl limits set compact.reclaim 12h`,
		Args: named(func(cmd *cobra.Command, args []string) error {
			if len(args) == 2 && args[0] != "" && args[1] == "" {
				return fmt.Errorf("the value of %s is empty; `trawl limits unset %s` removes it", args[0], args[0])
			}
			return cobra.ExactArgs(2)(cmd, args)
		}),
	})
}

func newLimitsUnset(p Process) *cobra.Command {
	return limitCommand(p, &cobra.Command{
		Use: "unset NAME", Short: "Remove a limit, so that the setting is in force", Args: named(cobra.ExactArgs(1)),
	})
}

// limitCommand makes a command that sets the limit of its first argument to its second one, or unsets it.
func limitCommand(p Process, cmd *cobra.Command) *cobra.Command {
	return calling(p, cmd, func(ctx context.Context, c client, args []string) error {
		value := strings.Join(args[1:], "")
		resp, err := c.admin.SetLimit(ctx, &adminv1.SetLimitRequest{Name: args[0], Value: value})
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(p.Out, "%s: %s; before: %s\n", args[0], cmp.Or(value, "the setting"), cmp.Or(resp.GetBefore(), "the setting"))
		return err
	})
}
