package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"github.com/trawl-search/trawl/bench/peer"
	"github.com/trawl-search/trawl/bench/report"
)

// grepConfig configures measureGrep.
type grepConfig struct {
	// Folder is searched.
	Folder string
	// Trawl is the program.
	Trawl string
	// Repeat is how often each query runs; the fastest run counts.
	Repeat int
	// Results is the folder of the dated table; if empty, the table goes only to Out.
	Results string
	Out     io.Writer
	// Args are the arguments of the run, for the table.
	Args []string
}

// grepQueries are run on every tree: words, texts and expressions, from some that occur nowhere to some that occur everywhere.
var grepQueries = [][]string{
	{"nowhereToBeFoundAtAll"}, {"-w", "deprecated"}, {"mutex_lock"}, {"TODO|FIXME"}, {"-i", "permission denied"},
	{`func \w+Handler`}, {`static\s+int\s+\w+_probe\(`}, {`[A-Z]{3}_[A-Z]{4}_[0-9]+`}, {`^#include <linux/mm`}, {"-w", "return"}, {"-l", "the"},
}

// grepRun is one run of measureGrep.
type grepRun struct {
	cfg   grepConfig
	cache string // folder for indexes
	csIdx string // of codesearch; empty if that is missing
	table report.Table
}

// measureGrep compares trawl grep on a folder with ripgrep, which reads everything, and with Russ Cox's codesearch, which has
// an index but does not check whether files changed. It writes the table.
func measureGrep(ctx context.Context, cfg grepConfig) (err error) {
	dir, err := os.MkdirTemp("", "bench-grep")
	if err != nil {
		return fmt.Errorf("making a folder for indexes: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }() // a temporary folder
	if cfg.Trawl, err = filepath.Abs(cfg.Trawl); err != nil {
		return fmt.Errorf("finding the program: %w", err)
	}
	r := &grepRun{cfg: cfg, cache: filepath.Join(dir, "cache")}
	started := time.Now()
	var text bytes.Buffer
	fmt.Fprintf(&text, "trawl grep in %s, %s\n", cfg.Folder, started.UTC().Format(time.RFC3339))
	report.Host(ctx, &text, cfg.Args)
	files, size, err := folderSize(cfg.Folder)
	if err != nil {
		return err
	}
	fmt.Fprintf(&text, "  folder    %d files, %s MB\n\n", files, report.Megabytes(size))
	if err := r.index(ctx, &text, dir); err != nil {
		return err
	}
	if err := r.ask(ctx); err != nil {
		return err
	}
	fmt.Fprintf(&text, "\nMilliseconds from start to end, of the fastest of %d runs in turn, all files in memory:\n\n", cfg.Repeat)
	r.table.Write(&text)
	if cfg.Results != "" {
		name := filepath.Join(cfg.Results, started.UTC().Format("2006-01-02-150405")+"-grep-"+filepath.Base(cfg.Folder)+".txt")
		if err := os.WriteFile(name, text.Bytes(), 0o644); err != nil {
			return fmt.Errorf("writing the table: %w", err)
		}
	}
	_, err = cfg.Out.Write(text.Bytes())
	return err //nolint:wrapcheck // of the caller's writer
}

// folderSize counts the regular files below a folder, and their bytes.
func folderSize(folder string) (files int, size int64, err error) {
	err = filepath.WalkDir(folder, func(_ string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		info, err := e.Info()
		if err == nil {
			files++
			size += info.Size()
		}
		return err
	})
	if err != nil {
		return 0, 0, fmt.Errorf("reading %s: %w", folder, err)
	}
	return files, size, nil
}

// command is a program that searches the folder.
func (r *grepRun) command(ctx context.Context, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = r.cfg.Folder
	cmd.Env = append(os.Environ(), "XDG_CACHE_HOME="+r.cache, "CSEARCHINDEX="+r.csIdx)
	return cmd
}

// index builds the indexes.
func (r *grepRun) index(ctx context.Context, text io.Writer, dir string) error {
	if err := os.Mkdir(r.cache, 0o700); err != nil {
		return fmt.Errorf("making the folder for indexes: %w", err)
	}
	var cost peer.Cost
	if _, err := peer.Measure(r.command(ctx, r.cfg.Trawl, "grep", grepQueries[0][0]), &cost); err != nil {
		return err
	}
	_, size, err := folderSize(r.cache)
	if err != nil {
		return err
	}
	line := "  %-12s first search and index %s s (processor %s s), index %s MB, peak memory %s MB\n"
	seconds := func(d time.Duration) string { return strconv.FormatFloat(d.Seconds(), 'f', 1, 64) }
	fmt.Fprintf(text, line, "trawl grep", seconds(cost.Wall), seconds(cost.CPU), report.Megabytes(size), report.Megabytes(cost.Peak))
	if path, _ := exec.LookPath("cindex"); path == "" {
		return nil // it is not installed, so it takes no part
	}
	r.csIdx = filepath.Join(dir, "csearchindex")
	cost = peer.Cost{}
	if _, err := peer.Measure(r.command(ctx, "cindex", r.cfg.Folder), &cost); err != nil {
		return err
	}
	info, err := os.Stat(r.csIdx)
	if err != nil {
		return fmt.Errorf("reading the size of an index: %w", err)
	}
	fmt.Fprintf(text, line, "codesearch", seconds(cost.Wall), seconds(cost.CPU), report.Megabytes(info.Size()), report.Megabytes(cost.Peak))
	return nil
}

// ask runs every query on every engine, in turn.
func (r *grepRun) ask(ctx context.Context) error {
	head := []string{"query", "lines", "rg", "trawl", "rg / trawl", "rg processor", "trawl processor"}
	if r.csIdx != "" {
		head = append(head, "csearch")
	}
	r.table.Row(head...)
	var ratios []float64
	for _, q := range grepQueries {
		rg, own, cs := peer.Cost{Wall: time.Hour}, peer.Cost{Wall: time.Hour}, peer.Cost{Wall: time.Hour}
		var want, got []byte
		for range r.cfg.Repeat {
			var err error
			if want, err = fastest(r.command(ctx, "rg", append([]string{"--no-config", "-n", "--no-heading", "--color=never"}, append(q, "./")...)...), &rg); err != nil {
				return err
			}
			if got, err = fastest(r.command(ctx, r.cfg.Trawl, append([]string{"grep"}, append(q, "./")...)...), &own); err != nil {
				return err
			}
			if r.csIdx != "" && q[0] != "-w" { // it has no such option
				if _, err = fastest(r.command(ctx, "csearch", append([]string{"-n"}, q...)...), &cs); err != nil {
					return err
				}
			}
		}
		lines := strconv.Itoa(bytes.Count(got, []byte{'\n'}))
		if len(got) != len(want) {
			lines += " (differs)"
		}
		ratio := float64(rg.Wall) / float64(own.Wall)
		ratios = append(ratios, ratio)
		row := []string{fmt.Sprintf("%q", q), lines, report.Milliseconds(rg.Wall), report.Milliseconds(own.Wall), fmt.Sprintf("%.2f", ratio),
			report.Milliseconds(rg.CPU), report.Milliseconds(own.CPU)}
		if cs.Wall < time.Hour {
			row = append(row, report.Milliseconds(cs.Wall))
		}
		r.table.Row(row...)
	}
	r.table.Row("geometric mean", "", "", "", fmt.Sprintf("%.2f", report.GeometricMean(ratios)))
	return nil
}

// fastest runs a command and keeps its cost if that is lower.
func fastest(cmd *exec.Cmd, best *peer.Cost) ([]byte, error) {
	var cost peer.Cost
	out, err := peer.Measure(cmd, &cost)
	if cost.Wall < best.Wall {
		*best = cost
	}
	return out, err
}
