package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/trawl-search/trawl/cmd/trawl/internal/render"
	"github.com/trawl-search/trawl/internal/searchapi"
	"github.com/trawl-search/trawl/internal/wait"
	adminv1 "github.com/trawl-search/trawl/proto/trawl/admin/v1"
)

func newSearchers(p Process) *cobra.Command {
	cmd := &cobra.Command{Use: "searchers", Short: "List searchers, and take one out of service"}
	return withSubcommands(cmd, newSearchersList(p), newSearchersDrain(p))
}

func newSearchersList(p Process) *cobra.Command {
	cmd := &cobra.Command{Use: "list", Short: "List the searchers with their shards"}
	return listing(p, cmd, func(ctx context.Context, c client, asJSON bool) error {
		resp, err := c.admin.ListSearchers(ctx, &adminv1.ListSearchersRequest{})
		if err != nil {
			return err
		}
		if asJSON {
			return printMessages(p.Out, "searchers", resp.GetSearchers()...)
		}
		return printSearchers(p.Out, resp.GetSearchers())
	})
}

func printSearchers(out io.Writer, searchers []*adminv1.Searcher) error {
	return table(out, "searchers", func(w io.Writer) {
		fmt.Fprintln(w, "ID\tSTATE\tZONE\tADDRESS\tVERSION\tFORMATS\tSHARDS\tSIZE\tLOADING\tSINCE")
		for _, s := range searchers {
			formats := strings.Trim(strings.ReplaceAll(fmt.Sprint(s.GetShardFormats()), " ", ","), "[]")
			state := searchapi.EnumWords(s.GetState().String(), "SEARCHER_STATE_")
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%d\t%s\t%d\t%s\n", render.Safe([]byte(s.GetId())), state, dash(render.Safe([]byte(s.GetZone()))),
				dash(render.Safe([]byte(s.GetAddress()))), dash(render.Safe([]byte(s.GetVersion()))), dash(formats), s.GetShards(),
				searchapi.Bytes(s.GetShardBytes()), s.GetLoading(), moment(s.GetStartedAt()))
		}
	})
}

func newSearchersDrain(p Process) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "drain ID",
		Short: "Move the shards of a searcher to others, and wait until those serve them",
		Long: `Move the shards of a searcher to others, and wait until those serve them.

The searcher answers queries until then, so answers stay complete. After that it can be stopped for good. It stays
drained when it is started again, until --undo. The command can be interrupted and run again: the searcher goes on draining.`,
		Args: named(cobra.ExactArgs(1)),
	}
	undo := cmd.Flags().Bool("undo", false, "let the searcher take shards again")
	return calling(p, cmd, func(ctx context.Context, c client, args []string) error {
		resp, err := c.admin.DrainSearcher(ctx, &adminv1.DrainSearcherRequest{Id: args[0], Undo: *undo})
		if err != nil {
			return err
		}
		if *undo {
			_, err := fmt.Fprintf(p.Out, "%s takes shards again\n", args[0])
			return err
		}
		if n, want := resp.GetRemaining(), resp.GetReplication(); n < want {
			fmt.Fprintf(p.Err, "only %d of the %d searchers that each shard needs remain: start another, since losing one more makes answers incomplete\n", n, want)
		}
		return waitDrained(ctx, c, p, args[0])
	})
}

// errUndone is a drain that somebody else ended.
var errUndone = errors.New("somebody undid the drain in the meantime")

// waitDrained waits until the other searchers have the shards of one.
func waitDrained(ctx context.Context, c client, p Process, id string) error {
	tally := render.NewTally(p.Err, isTerminal(p.Err), "searchers ready")
	defer tally.Done()
	for {
		resp, err := c.admin.ListSearchers(ctx, &adminv1.ListSearchersRequest{})
		if err != nil {
			return err
		}
		others := 0
		var self *adminv1.Searcher
		for _, s := range resp.GetSearchers() {
			switch {
			case s.GetId() == id:
				self = s
			case s.GetState() == adminv1.SearcherState_SEARCHER_STATE_ACTIVE:
				others++
			}
		}
		switch self.GetState() {
		case adminv1.SearcherState_SEARCHER_STATE_DRAINED, adminv1.SearcherState_SEARCHER_STATE_GONE:
			tally.Done()
			_, err := fmt.Fprintf(p.Out, "%s is drained: it can be stopped\n", id)
			return err
		case adminv1.SearcherState_SEARCHER_STATE_DRAINING:
			tally.Update(uint64(others-min(others, len(self.GetAwaited()))), uint64(others))
		default:
			return errUndone
		}
		if !wait.Sleep(ctx, time.Second) {
			tally.Done()
			fmt.Fprintf(p.Err, "%s goes on draining; these do not have its shards yet: %s\n", id, strings.Join(self.GetAwaited(), ", "))
			return context.Cause(ctx)
		}
	}
}
