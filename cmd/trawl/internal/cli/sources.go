package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/trawl-search/trawl/cmd/trawl/internal/render"
	"github.com/trawl-search/trawl/internal/codehost"
	ingestv1 "github.com/trawl-search/trawl/proto/trawl/ingest/v1"
)

func newSources(p Process) *cobra.Command {
	cmd := &cobra.Command{Use: "sources", Short: "List the sources of repositories, or apply a file of sources"}
	cmd.AddCommand(newSourcesApply(p), newSourcesStatus(p))
	return listing(p, cmd, func(ctx context.Context, c client, asJSON bool) error {
		resp, err := c.sources.ListSources(ctx, &ingestv1.ListSourcesRequest{})
		if err != nil {
			return err
		}
		if asJSON {
			return printMessages(p.Out, "sources", resp.GetSources()...)
		}
		return printSources(p.Out, resp.GetSources())
	})
}

func newSourcesApply(p Process) *cobra.Command {
	var (
		addr routerAt
		path string
		wait bool
	)
	cmd := &cobra.Command{
		Use:   "apply -f FILE",
		Short: "Replace all sources by those of a file",
		Long: `Replace all sources by those of a YAML file. The repositories of a source that is no longer in it are deleted
after its grace time. The file names credentials, by environment variable or file; it never holds them.`,
		Args: usageArgs(knownCommand),
		RunE: func(cmd *cobra.Command, _ []string) error {
			list, err := readSources(path)
			if err != nil {
				return usageError{err}
			}
			return withClient(cmd.Context(), addr, func(ctx context.Context, c client) error {
				done, err := c.sources.ApplySources(ctx, &ingestv1.ApplySourcesRequest{Sources: list})
				if err != nil {
					return err
				}
				_, err = fmt.Fprintf(p.Out, "%s: %d added, %d changed, %d removed\n",
					render.Count(uint64(len(list)), "source", "sources"), len(done.GetAdded()), len(done.GetChanged()), len(done.GetRemoved()))
				if names := append(done.GetAdded(), done.GetChanged()...); err == nil && wait && len(names) > 0 {
					return watchSources(ctx, c, p, names)
				}
				return err
			})
		},
	}
	addressFlag(cmd.Flags(), p, &addr)
	cmd.Flags().StringVarP(&path, "file", "f", "", "YAML file of sources")
	cmd.Flags().BoolVar(&wait, "wait", false, "wait until all repositories of added or changed sources can be searched, and show the progress")
	return cmd
}

func readSources(path string) ([]*ingestv1.Source, error) {
	if path == "" {
		return nil, errors.New("the file of sources is missing: name it with -f FILE")
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("reading the sources: %w", err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, codehost.MaxFileBytes+1))
	if err != nil {
		return nil, fmt.Errorf("reading the sources: %w", err)
	}
	list, err := codehost.ParseSources(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return list, nil
}

func printSources(out io.Writer, list []*ingestv1.SourceStatus) error {
	tw := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, "NAME\tSTATE\tKIND\tREPOS\tLEAVING\tFOREIGN\tREFUSED\tLAST SUCCESS\tNEXT LOOK\tIN BUCKET")
	for _, s := range list {
		r := s.GetReport()
		stored := "no"
		if s.GetStored() {
			stored = "yes"
		}
		fmt.Fprintf(tw, "%s\t%s\t%s\t%d\t%d\t%d\t%d\t%s\t%s\t%s\n", s.GetSource().GetName(), sourceState(s), s.GetSource().GetKind(),
			r.GetRepos(), r.GetLeaving(), r.GetForeign(), r.GetRefused(), moment(r.GetSucceededAt()), moment(r.GetNextAt()), stored)
	}
	if err := tw.Flush(); err != nil {
		return fmt.Errorf("printing the sources: %w", err)
	}
	for _, s := range list {
		if reason := s.GetReport().GetReason(); reason != "" {
			fmt.Fprintf(out, "%s: %s; failed %s, next try at %s\n", s.GetSource().GetName(), render.Safe([]byte(reason)),
				render.Count(uint64(s.GetReport().GetFailures()), "time", "times"), moment(s.GetReport().GetNextAt()))
		}
	}
	return nil
}

// sourceState is the state of a source in one word.
func sourceState(s *ingestv1.SourceStatus) string {
	switch {
	case s.GetReport().GetFailures() > 0:
		return "failing"
	case s.GetRemoved():
		return "removed"
	case s.GetReport().GetLookedAt() == nil:
		return "new"
	}
	return "ok"
}

func moment(t *timestamppb.Timestamp) string {
	if t == nil {
		return "-"
	}
	return t.AsTime().Format(time.RFC3339)
}
