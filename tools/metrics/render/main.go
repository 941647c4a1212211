// Command render draws the Grafana dashboards with what a running Trawl tells: it
// runs one that indexes and searches, scrapes it, evaluates each panel's queries
// with Prometheus's engine, and writes a page for each dashboard. With a Chromium
// it makes pictures of them. It is no Grafana: the queries, units, titles and
// places are the dashboards' own, the drawing is not.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/trawl-search/trawl/tools/metrics"
)

func main() {
	root := flag.String("root", "../..", "folder of the repository")
	out := flag.String("out", "../../docs/dashboards", "folder for the pictures")
	minutes := flag.Int("minutes", 6, "how long Trawl works")
	browser := flag.String("chromium", "chromium", "program that makes pictures of pages")
	flag.Parse()
	if err := run(context.Background(), *root, *out, *browser, time.Duration(*minutes)*time.Minute); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, root, out, browser string, during time.Duration) error {
	dir, err := os.MkdirTemp("", "trawl-render-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	store, err := metrics.OpenStore(filepath.Join(dir, "db"))
	if err != nil {
		return err
	}
	defer store.Close()
	from, to, err := live(ctx, store, root, dir, during)
	if err != nil {
		return err
	}
	boards, err := metrics.Dashboards(filepath.Join(root, "charts", "trawl", "dashboards"))
	if err != nil {
		return err
	}
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	for _, board := range boards {
		html, height, err := page(ctx, store, board, from, to)
		if err != nil {
			return fmt.Errorf("draw %s: %w", board.Name, err)
		}
		file := filepath.Join(dir, board.Name+".html")
		if err := os.WriteFile(file, html, 0o600); err != nil {
			return err
		}
		picture, err := filepath.Abs(filepath.Join(out, board.Name+".png"))
		if err != nil {
			return err
		}
		if err := screenshot(ctx, browser, file, picture, height); err != nil {
			return err
		}
	}
	return nil
}

func screenshot(ctx context.Context, browser, file, picture string, height int) error {
	cmd := exec.CommandContext(ctx, browser, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
		fmt.Sprintf("--window-size=%d,%d", width, height), "--screenshot="+picture, "file://"+file)
	if said, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("make a picture of %s: %w\n%s", file, err, said)
	}
	return nil
}
