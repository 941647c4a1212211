package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/trawl-search/trawl/cmd/trawl/internal/render"
	"github.com/trawl-search/trawl/index/query"
	"github.com/trawl-search/trawl/index/search"
	"github.com/trawl-search/trawl/internal/searchapi"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

func newShard(p Process) *cobra.Command {
	cmd := &cobra.Command{Use: "shard", Short: "Build, search, inspect and check single index files"}
	return withSubcommands(cmd, newShardBuild(p), newShardSearch(p), newShardDump(p), newShardVerify(p))
}

// withShard opens a shard, runs f on it and closes it.
func withShard(path string, f func(*search.Shard) error) error {
	s, err := search.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f(s), s.Close())
}

func newShardSearch(p Process) *cobra.Command {
	var output outputFlags
	cmd := &cobra.Command{
		Use:   "search FILE QUERY...",
		Short: "Search one shard",
		Args:  usageArgs(cobra.MinimumNArgs(2)),
		RunE: func(cmd *cobra.Command, args []string) error {
			out, err := output.printer(p)
			if err != nil {
				return err
			}
			text := strings.Join(args[1:], " ")
			return withShard(args[0], func(s *search.Shard) error {
				began := time.Now()
				options := output.options(true)
				answer, err := searchShard(cmd.Context(), s, text, options)
				if err != nil {
					return &queryError{text, err}
				}
				if err := show(out, answer.GetFiles()); err != nil {
					return err
				}
				return sumUp(out, answer, time.Since(began), showsMore(answer, false, uint32(len(answer.GetFiles())), options.MaxFiles))
			})
		},
	}
	output.declare(cmd.Flags())
	return cmd
}

// searchShard answers like a router whose only shard is s.
func searchShard(ctx context.Context, s *search.Shard, text string, options *searchv1.SearchOptions) (*searchv1.SearchResponse, error) {
	q, asks, err := searchapi.ParseAnswer(text, options.GetSyntaxVersion())
	if err != nil {
		return nil, err
	}
	if asks.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, asks.Timeout)
		defer cancel()
	}
	q, err = query.ResolveRepos(q, func(child query.Q) ([]string, error) { return repoNames(ctx, s, child) })
	if err != nil {
		return nil, fmt.Errorf("finding the repos of a type:repo: %w", err)
	}
	ready, err := search.Prepare(q)
	if err != nil {
		return nil, err
	}
	options = searchapi.WithDefaults(options)
	selected := searchapi.ApplyAnswer(options, asks)
	opts := searchapi.ShardOptions(options, nil, searchapi.AllRepos())
	opts.Symbols = opts.Symbols || query.AsksForSymbols(q)
	found, err := s.Search(ctx, ready, opts)
	if err != nil {
		return nil, err
	}
	if found.Incomplete != nil {
		return nil, fmt.Errorf("the search did not finish: %w", found.Incomplete)
	}
	answer := &searchv1.SearchResponse{
		Files: slices.Collect(searchapi.Files(found.Files)), Statistics: searchapi.Statistics(found.Stats),
		Coverage: &searchv1.Coverage{Complete: true, Requested: 1, Searched: 1}, Selected: selected,
	}
	if by := searchapi.ShardFacets(options); len(by) > 0 {
		counted, err := s.Count(ctx, ready, opts, by)
		if err != nil {
			return nil, err
		}
		if counted.Incomplete != nil {
			return nil, fmt.Errorf("the search did not finish: %w", counted.Incomplete)
		}
		answer.Facets = searchapi.Facets(by, counted.Facets, int(options.MaxFacetValues))
	}
	if found.Explanation != nil {
		answer.Explanation = searchapi.Explanation(found.Explanation, searchapi.Digest{})
		answer.Explanation.SlowestShards = nil // there is one
	}
	return answer, nil
}

// repoNames are the repos of a shard in which something matches q.
func repoNames(ctx context.Context, s *search.Shard, q query.Q) ([]string, error) {
	ready, err := search.Prepare(q)
	if err != nil {
		return nil, err
	}
	list, err := s.List(ctx, ready, search.ListOptions{})
	if err != nil {
		return nil, err
	}
	var names []string
	for _, r := range list.Repos {
		names = append(names, r.Repo.Name)
	}
	return names, list.Incomplete
}

func newShardDump(p Process) *cobra.Command {
	return &cobra.Command{
		Use:   "dump FILE",
		Short: "Print what a shard consists of: versions, sections with their sizes, repos",
		Args:  named(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			return withShard(args[0], func(s *search.Shard) error { return s.Dump(cmd.Context(), p.Out) })
		},
	}
}

func newShardVerify(p Process) *cobra.Command {
	return &cobra.Command{
		Use:   "verify FILE...",
		Short: "Read all of a shard and check every checksum and every structure",
		Args:  named(cobra.MinimumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			var failed error
			for _, path := range args {
				if err := verifyShard(cmd.Context(), p, path); err != nil {
					failed = errors.Join(failed, err)
				}
				if cmd.Context().Err() != nil {
					break
				}
			}
			return failed
		},
	}
}

func verifyShard(ctx context.Context, p Process, path string) error {
	return withShard(path, func(s *search.Shard) error {
		began := time.Now()
		if err := s.Verify(ctx); err != nil {
			return err
		}
		_, err := fmt.Fprintf(p.Out, "%s: sound: %s, %s, in %s\n", path, render.Count(uint64(s.Documents()), "document", "documents"),
			searchapi.Bytes(uint64(s.Size())), render.Duration(time.Since(began)))
		return err
	})
}
