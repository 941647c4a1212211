package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/trawl-search/trawl/cmd/trawl/internal/render"
	"github.com/trawl-search/trawl/internal/codehost"
	"github.com/trawl-search/trawl/internal/config"
	ingestv1 "github.com/trawl-search/trawl/proto/trawl/ingest/v1"
)

func newSources(p Process) *cobra.Command {
	cmd := listSources(p, &cobra.Command{Use: "sources", Short: "List the sources of repositories, or apply a file of sources"})
	cmd.AddCommand(listSources(p, &cobra.Command{Use: "list", Hidden: true}), newSourcesApply(p), newSourcesStatus(p))
	return cmd
}

// listSources makes cmd list the sources.
func listSources(p Process, cmd *cobra.Command) *cobra.Command {
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
	cmd := &cobra.Command{
		Use:   "apply -f FILE",
		Short: "Replace all sources by those of a file",
		Long: `Replace all sources by those of a YAML file. The repositories of a source that is no longer in it are deleted
after its grace time. The file names credentials, by environment variable or file; it never holds them.`,
		Args: usageArgs(knownCommand),
	}
	path := cmd.Flags().StringP("file", "f", "", "YAML file of sources")
	watch := cmd.Flags().Bool("wait", false, "wait until all repositories of added or changed sources can be searched, and show the progress")
	return calling(p, cmd, func(ctx context.Context, c client, _ []string) error {
		list, err := readSources(*path)
		if err != nil {
			return usageError{err}
		}
		done, err := c.sources.ApplySources(ctx, &ingestv1.ApplySourcesRequest{Sources: list})
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(p.Out, "%s: %d added, %d changed, %d removed\n",
			render.Count(uint64(len(list)), "source", "sources"), len(done.GetAdded()), len(done.GetChanged()), len(done.GetRemoved()))
		if names := append(done.GetAdded(), done.GetChanged()...); err == nil && *watch && len(names) > 0 {
			return watchSources(ctx, c, p, names)
		}
		return err
	})
}

func readSources(path string) ([]*ingestv1.Source, error) {
	if path == "" {
		return nil, errors.New("the file of sources is missing: name it with -f FILE")
	}
	text, err := config.ReadFile(path, codehost.MaxFileBytes)
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
	err := table(out, "sources", func(w io.Writer) {
		fmt.Fprintln(w, "NAME\tSTATE\tKIND\tREPOS\tLEAVING\tFOREIGN\tREFUSED\tLAST SUCCESS\tNEXT LOOK\tIN BUCKET")
		for _, s := range list {
			r := s.GetReport()
			stored := "no"
			if s.GetStored() {
				stored = "yes"
			}
			fmt.Fprintf(w, "%s\t%s\t%s\t%d\t%d\t%d\t%d\t%s\t%s\t%s\n", s.GetSource().GetName(), sourceState(s), s.GetSource().GetKind(),
				r.GetRepos(), r.GetLeaving(), r.GetForeign(), r.GetRefused(), moment(r.GetSucceededAt()), moment(r.GetNextAt()), stored)
		}
	})
	if err != nil {
		return err
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
