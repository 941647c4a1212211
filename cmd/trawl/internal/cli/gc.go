package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/trawl-search/trawl/cmd/trawl/internal/render"
	"github.com/trawl-search/trawl/internal/catalog"
	"github.com/trawl-search/trawl/internal/config"
	"github.com/trawl-search/trawl/internal/gc"
	"github.com/trawl-search/trawl/internal/searchapi"
)

type gcSettings struct {
	gc.Config
	DryRun   bool `config:"dry-run" doc:"change nothing: say what would be deleted and condemned"`
	Audit    bool `config:"audit" doc:"change nothing: list garbage, and objects in use that are missing or of the wrong size"`
	Contents bool `config:"contents" doc:"with --audit: read all objects in use and compare their digests too"`
	JSON     bool `config:"json" doc:"print JSON"`

	storage
}

// SetDefaults implements config.Settings.
func (s *gcSettings) SetDefaults() {
	config.Defaults(s)
	s.LogLevel, s.LogFormat = "warn", "text"
}

// Validate implements config.Settings.
func (s *gcSettings) Validate() error {
	var check config.Check
	check.Parts(s)
	check.That(s.Audit || !s.Contents, "contents", s.Contents, "nothing without --audit")
	check.That(!s.Audit || !s.DryRun, "dry-run", s.DryRun, "nothing with --audit, which never changes anything")
	return check.Err()
}

func newGC(p Process) *cobra.Command {
	var s gcSettings
	cmd := &cobra.Command{
		Use:   "gc",
		Short: "Collect the garbage of the bucket once, or audit the bucket",
		Long: `Collect the garbage of the bucket once: delete what earlier passes have condemned and what has waited for --hold,
and condemn what can no longer be reached. The indexers do so by themselves, at every --gc-every; running it
alongside them does no harm.

--audit lists every object with a problem instead, and exits with status 1 if an object in use is missing or damaged.`,
	}
	return configured(p, cmd, &s, func(cmd *cobra.Command) error { return runGC(cmd.Context(), p, s) })
}

func runGC(ctx context.Context, p Process, s gcSettings) (err error) {
	var sh shared
	defer func() { err = errors.Join(err, sh.close()) }()
	if err := sh.openStorage(ctx, p, s.storage, "gc"); err != nil {
		return err
	}
	c := gc.Collector{
		Store: catalog.New(sh.etcd, sh.prefix), Bucket: sh.bucket, Config: s.Config, DryRun: s.DryRun, Log: sh.telemetry.Logger(),
	}
	if s.Audit {
		return audit(ctx, p.Out, &c, s)
	}
	report, err := c.Pass(ctx)
	if err != nil {
		return err
	}
	if s.JSON {
		return json.NewEncoder(p.Out).Encode(report)
	}
	return printReport(p.Out, report, s.DryRun)
}

func printReport(out io.Writer, r gc.Report, dry bool) error {
	deleted, condemned := "deleted", "condemned"
	if dry {
		deleted, condemned = "would delete", "would condemn"
	}
	return table(out, "report", func(w io.Writer) {
		for _, row := range []struct {
			what string
			n    gc.Count
		}{{deleted, r.Deleted}, {condemned, r.Condemned}, {"waiting", r.Waiting}, {"above the limit", r.Excess}, {"in use", r.Kept}} {
			fmt.Fprintf(w, "%s\t%s\t%s\n", row.what, objects(row.n), searchapi.Bytes(row.n.Bytes))
		}
	})
}

// audit prints every finding as it comes. A problem with an object in use is an error.
func audit(ctx context.Context, out io.Writer, c *gc.Collector, s gcSettings) error {
	found := map[gc.Problem]*gc.Count{}
	show := printFinding
	if s.JSON {
		show = func(out io.Writer, f gc.Finding) error { return json.NewEncoder(out).Encode(f) }
	}
	well, err := c.Audit(ctx, s.Contents, func(f gc.Finding) error {
		if found[f.Problem] == nil {
			found[f.Problem] = &gc.Count{}
		}
		found[f.Problem].Objects++
		found[f.Problem].Bytes += f.Bytes
		return show(out, f)
	})
	if err != nil {
		return err
	}
	if !s.JSON {
		fmt.Fprintf(out, "in use and intact: %s, %s\n", objects(well), searchapi.Bytes(well.Bytes))
		for _, p := range []gc.Problem{gc.Orphan, gc.Condemned, gc.Unknown, gc.Missing, gc.WrongSize, gc.WrongDigest} {
			if n := found[p]; n != nil {
				fmt.Fprintf(out, "%s: %s, %s\n", p, objects(*n), searchapi.Bytes(n.Bytes))
			}
		}
	}
	if found[gc.Missing] != nil || found[gc.WrongSize] != nil || found[gc.WrongDigest] != nil {
		return errors.New("objects in use are missing or damaged: `trawl repos reindex` of their repositories makes them anew")
	}
	return nil
}

func printFinding(out io.Writer, f gc.Finding) error {
	age := "-"
	if !f.Put.IsZero() {
		age = time.Since(f.Put).Round(time.Second).String()
	}
	_, err := fmt.Fprintf(out, "%-12s %12s %10s  %s  %s\n", f.Problem, age, searchapi.Bytes(f.Bytes), render.Safe([]byte(f.Key)), render.Safe([]byte(f.Repo)))
	return err
}

// objects is a number of objects in words.
func objects(n gc.Count) string { return render.Count(uint64(n.Objects), "object", "objects") }
