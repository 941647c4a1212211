package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/trawl-search/trawl/cmd/trawl/internal/render"
	"github.com/trawl-search/trawl/internal/catalog"
	"github.com/trawl-search/trawl/internal/restore"
)

type restoreSettings struct {
	DryRun   bool     `config:"dry-run" doc:"write nothing: say what would be restored"`
	Contents bool     `config:"contents" doc:"read all shards and compare their digests too"`
	Skip     []string `config:"skip" doc:"repos that must not come back, such as those deleted lately"`
	JSON     bool     `config:"json" doc:"print JSON, an object for each repo"`

	storage
}

// SetDefaults implements config.Settings.
func (s *restoreSettings) SetDefaults() {
	s.storage.SetDefaults()
	s.LogLevel, s.LogFormat = "warn", "text"
}

func newRestore(p Process) *cobra.Command {
	var s restoreSettings
	cmd := &cobra.Command{
		Use:   "restore",
		Short: "Fill an empty etcd from the manifests in the bucket",
		Long: `Fill an etcd that lost everything from the manifests in the bucket: the newest generation of each repo whose shards
are all there is served again, and the repo is desired again. The sources come back as they were applied last. An etcd
with repos in it is refused. At the end this etcd owns the bucket; until then nothing in it is collected.

The bucket does not record which repos were deleted: those whose garbage is not collected yet come back, unless --skip
names them. A name that no manifest has is refused. Tokens of callers are lost; make new ones by trawl tokens.`,
	}
	return configured(p, cmd, &s, func(cmd *cobra.Command) error { return runRestore(cmd.Context(), p, s) })
}

func runRestore(ctx context.Context, p Process, s restoreSettings) (err error) {
	var sh shared
	defer func() { err = errors.Join(err, sh.close()) }()
	if err := sh.openStorage(ctx, p, s.storage, "restore"); err != nil {
		return err
	}
	r := restore.Restorer{
		Store: catalog.New(sh.etcd, sh.prefix), Bucket: sh.bucket, Contents: s.Contents, DryRun: s.DryRun, Skip: s.Skip,
	}
	served, damaged := uint64(0), uint64(0)
	err = r.Run(ctx, func(repo restore.Repo) error {
		if repo.Generation > 0 {
			served++
		}
		if s.JSON {
			return json.NewEncoder(p.Out).Encode(repo)
		}
		return printRestored(p, repo)
	}, func(key string, err error) {
		damaged++
		fmt.Fprintf(p.Err, "%s: %v\n", render.Safe([]byte(key)), err)
	})
	if err == nil {
		err = r.Sources(ctx, func(source restore.Source) error {
			if s.JSON {
				return json.NewEncoder(p.Out).Encode(source)
			}
			return printSource(p, source)
		})
	}
	if err == nil && !s.JSON {
		can := "can be searched"
		if s.DryRun {
			can = "would be searched again; nothing was written"
		}
		fmt.Fprintf(p.Out, "%s %s\n", render.Count(served, "repo", "repos"), can)
		if damaged > 0 {
			fmt.Fprintf(p.Out, "%s among the manifests cannot be read\n", render.Count(damaged, "object", "objects"))
		}
	}
	if err == nil && s.DryRun {
		if used := r.Store.CheckEmpty(ctx); errors.Is(used, catalog.ErrInUse) {
			fmt.Fprintf(p.Err, "without --dry-run this fails: %v\n", used)
		}
	}
	return err
}

func printRestored(p Process, repo restore.Repo) error {
	what := fmt.Sprintf("generation %d", repo.Generation)
	switch {
	case repo.Skipped:
		what = "skipped"
	case repo.Generation == 0:
		what = "to be built anew"
	case repo.Generation < repo.Newest:
		what += fmt.Sprintf(" of %d, to be built anew", repo.Newest)
	}
	_, err := fmt.Fprintf(p.Out, "%s  %s\n", render.Safe([]byte(repo.Name)), what)
	for _, problem := range repo.Problems {
		_, err = fmt.Fprintf(p.Out, "  %s\n", render.Safe([]byte(problem)))
	}
	return err
}

func printSource(p Process, source restore.Source) error {
	what := "applied"
	switch {
	case source.Problem != "":
		what = source.Problem
	case source.Kept:
		what = "kept as it was applied since"
	case source.Removed:
		what = "removed"
	}
	_, err := fmt.Fprintf(p.Out, "source %s  %s\n", source.Name, what)
	return err
}
