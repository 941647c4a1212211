// Command fired prints which alerts ring for recorded metrics: one line for each whose expression comes true, with name,
// severity, the time at which it first does, and that at which the alert first fires; a dash if it never holds for long enough.
//
//	fired RULES FOLDER
//
// The folder has a file MILLISECONDS-POD.prom for each scrape of a pod.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/trawl-search/trawl/tools/metrics"
)

// step is the time between two evaluations of a rule.
const step = 5 * time.Second

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: fired RULES FOLDER")
		os.Exit(2)
	}
	if err := run(context.Background(), os.Stdout, os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "fired:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer, rules, recording string) (err error) {
	alerts, err := metrics.Alerts(rules)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "fired-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	store, err := metrics.OpenStore(dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	from, to, err := load(ctx, store, recording)
	if err != nil {
		return err
	}
	for _, alert := range alerts {
		at := [2]string{"-", "-"}
		for i, duration := range []metrics.Duration{0, alert.For} {
			alert.For = duration
			sample, err := store.Fires(ctx, alert, from, to, step)
			if err != nil {
				return err
			}
			if sample != nil {
				at[i] = time.UnixMilli(sample.T).UTC().Format(time.RFC3339)
			}
		}
		if at[0] != "-" {
			fmt.Fprintln(out, alert.Alert, alert.Labels["severity"], at[0], at[1])
		}
	}
	return nil
}

// load adds all pages of a folder to a store, in the order of their times.
func load(ctx context.Context, store *metrics.Store, dir string) (from, to time.Time, err error) {
	pages, err := filepath.Glob(filepath.Join(dir, "*.prom")) // sorted by time, since all times have equally many digits
	if err == nil && len(pages) == 0 {
		err = fmt.Errorf("%s holds no metrics", dir)
	}
	if err != nil {
		return from, to, err
	}
	for i, path := range pages {
		at, pod, _ := strings.Cut(strings.TrimSuffix(filepath.Base(path), ".prom"), "-")
		ms, err := strconv.ParseInt(at, 10, 64)
		if err != nil {
			return from, to, fmt.Errorf("time of %s: %w", path, err)
		}
		page, err := os.ReadFile(path)
		if err != nil {
			return from, to, err
		}
		to = time.UnixMilli(ms)
		if i == 0 {
			from = to
		}
		if err := store.Add(ctx, page, to, pod); err != nil {
			return from, to, err
		}
	}
	return from, to, nil
}
