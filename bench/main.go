// Command bench measures Trawl on real trees and compares it with the installed
// peers. README.md in its folder explains its output.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/trawl-search/trawl/bench/corpus"
	"github.com/trawl-search/trawl/bench/relevance"
	"github.com/trawl-search/trawl/bench/run"
	"github.com/trawl-search/trawl/bench/served"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := start(ctx, os.Args[1:])
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func start(ctx context.Context, args []string) error {
	if len(args) == 1 && args[0] == run.ChildArgument {
		return run.Child(ctx, os.Stdin, os.Stdout)
	}
	commands := map[string]func(context.Context, []string) error{
		"push": push, "served": asServed, "relevance": ranked, "definitions": compareDefinitions, "words": byWords, "grep": grepFolder, "uses": fromUses, "lines": linesShown,
	}
	if len(args) == 0 || strings.HasPrefix(args[0], "-") {
		return inProcess(ctx, args)
	}
	command, ok := commands[args[0]]
	if !ok {
		return fmt.Errorf("unknown command %q: want %s, or flags alone", args[0], strings.Join(slices.Sorted(maps.Keys(commands)), ", "))
	}
	return command(ctx, args[1:])
}

// corporaUsage describes the flag -corpus.
var corporaUsage = strings.Join(corpus.Names(), ", ") + " or all; or the path of a folder, each folder in it a repo; several with commas in between"

// inProcess measures the engine and the installed peers.
func inProcess(ctx context.Context, args []string) error {
	cfg := run.Config{Log: os.Stderr, ZoektBin: os.Getenv("ZOEKT_BIN"), Args: args}
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.StringVar(&cfg.Corpus, "corpus", "go", corporaUsage)
	flags.Uint64Var(&cfg.Seed, "seed", 1, "seed of the sampled queries")
	flags.IntVar(&cfg.Queries, "queries", 20, "queries in each bucket")
	flags.IntVar(&cfg.Repeat, "repeat", 3, "builds of each index, and runs of each query by engines with their own index")
	flags.IntVar(&cfg.Modules, "modules", 128, "most repos of the corpus modules; 0: all")
	flags.IntVar(&cfg.Packed, "repos", 10_000, "most repos of the corpus packed; 0: all")
	flags.DurationVar(&cfg.Timeout, "timeout", run.DefaultTimeout, "longest time of one query")
	flags.StringVar(&cfg.Results, "results", filepath.Join("bench", "results"), "folder of the dated results")
	flags.BoolVar(&cfg.Peers, "peers", true, "measure the peers that are installed, too")
	flags.StringVar(&cfg.Profile, "profile", "", "index or search: write a CPU profile of that, and measure nothing")
	flags.StringVar(&cfg.ProfileFile, "profile-file", "bench.prof", "the profile's file")
	if err := flags.Parse(args); err != nil {
		return err
	}
	return run.Main(ctx, cfg)
}

// asServed measures `trawl up` as its callers see it.
func asServed(ctx context.Context, args []string) error {
	cfg := served.Config{Log: os.Stderr, ZoektBin: os.Getenv("ZOEKT_BIN"), Args: args, Clients: []int{1, 8, 64}}
	flags := flag.NewFlagSet("bench served", flag.ContinueOnError)
	flags.StringVar(&cfg.Corpus, "corpus", "go", corporaUsage)
	flags.Func("buckets", "sample queries for these buckets alone, with commas in between", func(list string) error {
		for name := range strings.SplitSeq(list, ",") {
			b := corpus.Bucket(name)
			if !slices.Contains(corpus.Buckets(), b) {
				return fmt.Errorf("unknown bucket %q: want some of %q", name, corpus.Buckets())
			}
			cfg.Buckets = append(cfg.Buckets, b)
		}
		return nil
	})
	flags.Func("clients", "numbers of concurrent clients, with commas in between (default 1,8,64)", func(list string) error {
		cfg.Clients = nil
		for number := range strings.SplitSeq(list, ",") {
			n, err := strconv.Atoi(number)
			if err != nil || n < 1 {
				return fmt.Errorf("number of clients %q: want a positive number", number)
			}
			cfg.Clients = append(cfg.Clients, n)
		}
		return nil
	})
	flags.Func("peer-limits", "limits of zoekt on files: raised, so that it indexes the same files as Trawl, or default, which adds a row with its own limits (default raised)", func(limits string) error {
		cfg.DefaultLimits = limits == "default"
		if limits != "default" && limits != "raised" {
			return fmt.Errorf("limits %q: want raised or default", limits)
		}
		return nil
	})
	flags.StringVar(&cfg.Keep, "keep", "", "folder that keeps zoekt's indexes for the next run on the same files; empty: none")
	flags.StringVar(&cfg.Trawl, "trawl", filepath.Join(".cache", "trawl"), "the program")
	flags.Uint64Var(&cfg.Seed, "seed", 1, "seed of the sampled queries")
	flags.IntVar(&cfg.Queries, "queries", 10, "queries in each bucket")
	flags.IntVar(&cfg.Repeat, "repeat", 5, "runs of each query, in turn")
	flags.DurationVar(&cfg.Load, "load", 2*time.Second, "least time for each number of clients; 0 skips this part")
	flags.IntVar(&cfg.Cold, "cold", 3, "rounds of first queries from a cold disk, for each number of users; 0 skips this part")
	flags.IntVar(&cfg.Ranged, "ranged", 0, "rounds of first queries on shards in S3, for each number of users; 0 skips this part")
	flags.BoolVar(&cfg.RE2, "re2", true, "also measure regular expressions in zoekt with RE2 for texts of 32 KiB and more")
	flags.IntVar(&cfg.Modules, "modules", 128, "most repos of the corpus modules; 0: all")
	flags.IntVar(&cfg.Packed, "repos", 1000, "most repos of the corpus packed; 0: all")
	flags.DurationVar(&cfg.Timeout, "timeout", run.DefaultTimeout, "longest time of one query")
	flags.StringVar(&cfg.Results, "results", filepath.Join("bench", "results"), "folder of the dated results")
	if err := flags.Parse(args); err != nil {
		return err
	}
	return served.Main(ctx, cfg)
}

// ranked measures the rank of files that are known to answer a query.
func ranked(ctx context.Context, args []string) error {
	cfg := relevance.Config{Log: os.Stderr, ZoektBin: os.Getenv("ZOEKT_BIN"), Args: args}
	flags := flag.NewFlagSet("bench relevance", flag.ContinueOnError)
	flags.StringVar(&cfg.Repos, "repos", filepath.Join(".cache", "repos"), "folder of the Git repositories")
	flags.StringVar(&cfg.Trawl, "trawl", filepath.Join(".cache", "trawl"), "the program")
	flags.StringVar(&cfg.Results, "results", filepath.Join("bench", "results"), "folder of the dated results")
	cases := flags.Bool("cases", false, "measure the cases of zoekt's own ranking test instead")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *cases {
		return relevance.Cases(ctx, cfg)
	}
	return relevance.Main(ctx, cfg)
}

// linesShown measures which lines of a file are shown first.
func linesShown(ctx context.Context, args []string) error {
	cfg := relevance.Config{Log: os.Stderr, ZoektBin: os.Getenv("ZOEKT_BIN"), Args: args}
	flags := flag.NewFlagSet("bench lines", flag.ContinueOnError)
	flags.StringVar(&cfg.Repos, "repos", filepath.Join(".cache", "repos"), "folder of the Git repositories")
	flags.StringVar(&cfg.Trawl, "trawl", filepath.Join(".cache", "trawl"), "the program")
	flags.StringVar(&cfg.Results, "results", filepath.Join("bench", "results"), "folder of the dated result")
	draw := flags.String("draw", "", "draw the known lines anew into this file, and measure nothing")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *draw != "" {
		return relevance.DrawLines(ctx, cfg, *draw)
	}
	return relevance.Lines(ctx, cfg)
}

// compareDefinitions compares definitions with those of ctags.
func compareDefinitions(ctx context.Context, args []string) error {
	cfg := definitionsConfig{Out: os.Stdout}
	flags := flag.NewFlagSet("bench definitions", flag.ContinueOnError)
	flags.IntVar(&cfg.Files, "files", 2000, "most files of each language")
	flags.StringVar(&cfg.Language, "language", "", "compare only this language, and write each difference")
	flags.StringVar(&cfg.Results, "results", filepath.Join("bench", "results"), "folder of the dated table; empty: none")
	if err := flags.Parse(args); err != nil {
		return err
	}
	cfg.Folders = flags.Args()
	return writeDefinitions(ctx, cfg)
}

// byWords measures ranked search by the number of words.
func byWords(ctx context.Context, args []string) error {
	cfg := wordsConfig{Out: os.Stdout, Args: args}
	flags := flag.NewFlagSet("bench words", flag.ContinueOnError)
	flags.StringVar(&cfg.Corpus, "corpus", "go", strings.Join(corpus.Names(), ", "))
	flags.Uint64Var(&cfg.Seed, "seed", 1, "seed of the sampled queries")
	flags.IntVar(&cfg.Queries, "queries", 100, "queries of each number of words")
	flags.IntVar(&cfg.Repeat, "repeat", 5, "times each query is asked")
	flags.StringVar(&cfg.Results, "results", filepath.Join("bench", "results"), "folder of the dated results")
	if err := flags.Parse(args); err != nil {
		return err
	}
	return measureWords(ctx, cfg)
}

// fromUses measures definitions from the places where names are used.
func fromUses(ctx context.Context, args []string) error {
	cfg := usesConfig{Out: os.Stdout, Args: args}
	flags := flag.NewFlagSet("bench uses", flag.ContinueOnError)
	flags.StringVar(&cfg.Trawl, "trawl", filepath.Join(".cache", "trawl"), "the program")
	flags.Uint64Var(&cfg.Seed, "seed", 1, "seed of the sample")
	flags.StringVar(&cfg.Tree, "tree", "", "a folder whose uses are asked for, by Universal Ctags; empty: Go's own packages, by go/types")
	flags.StringVar(&cfg.Language, "language", "", "the language in the folder: Python, Java, Rust or TypeScript")
	flags.IntVar(&cfg.Uses, "uses", 5000, "uses that are asked for")
	flags.BoolVar(&cfg.Show, "show", false, "write those whose first definition is not the right one")
	flags.StringVar(&cfg.Results, "results", filepath.Join("bench", "results"), "folder of the dated table; empty: none")
	if err := flags.Parse(args); err != nil {
		return err
	}
	return measureUses(ctx, cfg)
}

// grepFolder measures trawl grep.
func grepFolder(ctx context.Context, args []string) error {
	cfg := grepConfig{Out: os.Stdout, Args: args}
	flags := flag.NewFlagSet("bench grep", flag.ContinueOnError)
	flags.StringVar(&cfg.Trawl, "trawl", filepath.Join(".cache", "trawl"), "the program")
	flags.IntVar(&cfg.Repeat, "repeat", 5, "runs of each query, in turn")
	flags.StringVar(&cfg.Results, "results", filepath.Join("bench", "results"), "folder of the dated table; empty: none")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() != 1 {
		return errors.New("bench grep: name the one folder that is searched, after the flags")
	}
	cfg.Folder = flags.Arg(0)
	return measureGrep(ctx, cfg)
}

// push measures how long pushes take until they can be searched.
func push(ctx context.Context, args []string) error {
	cfg := run.PushConfig{Log: os.Stderr}
	flags := flag.NewFlagSet("bench push", flag.ContinueOnError)
	flags.StringVar(&cfg.Repo, "repo", ".", "Git repository to copy; the copy gets the pushes")
	flags.StringVar(&cfg.Trawl, "trawl", filepath.Join(".cache", "trawl"), "the program")
	flags.IntVar(&cfg.Commits, "commits", 100, "commits, of one file each")
	flags.Uint64Var(&cfg.Seed, "seed", 1, "seed of the files")
	flags.StringVar(&cfg.Results, "results", filepath.Join("bench", "results"), "folder of the dated results")
	if err := flags.Parse(args); err != nil {
		return err
	}
	return run.Push(ctx, cfg)
}
