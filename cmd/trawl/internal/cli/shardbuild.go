package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"time"

	"github.com/schollz/progressbar/v3"
	"github.com/spf13/cobra"

	"github.com/trawl-search/trawl/cmd/trawl/internal/render"
	"github.com/trawl-search/trawl/index/build"
	"github.com/trawl-search/trawl/index/docstore"
	"github.com/trawl-search/trawl/internal/gitsource"
	"github.com/trawl-search/trawl/internal/searchapi"
)

func newShardBuild(p Process) *cobra.Command {
	var (
		out      string
		name     string
		branches []string
	)
	cmd := &cobra.Command{
		Use:   "build --out FILE PATH",
		Short: "Build a shard from a folder or a Git repository",
		Args:  named(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if out == "" {
				return usageError{errors.New("--out is missing: the file to write")}
			}
			if name == "" {
				name = filepath.Base(args[0])
			}
			began := time.Now()
			b := shardBuild{name: name, progress: newDocumentBar(p)}
			err := b.run(cmd.Context(), args[0], out, branches)
			if err != nil {
				return err
			}
			return b.report(p, time.Since(began))
		},
	}
	cmd.Flags().StringVarP(&out, "out", "o", "", "file to write")
	cmd.Flags().StringVar(&name, "name", "", "name of the repository in the shard; otherwise that of the folder")
	cmd.Flags().StringArrayVarP(&branches, "branch", "b", nil, "`name` of a branch to index, or a tag as refs/tags/v1; may be repeated; otherwise what is checked out")
	return cmd
}

// shardBuild builds one shard of one source.
type shardBuild struct {
	name     string
	progress *progressbar.ProgressBar // nil without a terminal
	read     uint64                   // bytes of content
	result   build.Result
}

// newDocumentBar counts documents on a terminal.
func newDocumentBar(p Process) *progressbar.ProgressBar {
	if !isTerminal(p.Err) {
		return nil
	}
	return progressbar.NewOptions(-1, progressbar.OptionSetWriter(p.Err), progressbar.OptionSetDescription("documents"),
		progressbar.OptionShowCount(), progressbar.OptionThrottle(100*time.Millisecond), progressbar.OptionClearOnFinish())
}

// run builds the shard of the source at path as the file out.
func (b *shardBuild) run(ctx context.Context, path, out string, branches []string) (err error) {
	src, err := gitsource.Open(ctx, path, branches, gitsource.Limits{})
	if err != nil {
		return fmt.Errorf("opening %s: %w", path, err)
	}
	defer func() { err = errors.Join(err, src.Close()) }()
	return writeFile(out, 0o666, func(file io.Writer) error {
		w := bufio.NewWriterSize(file, 1<<20)
		if err := b.write(ctx, w, src); err != nil {
			return fmt.Errorf("building the shard: %w", err)
		}
		return w.Flush()
	})
}

func (b *shardBuild) write(ctx context.Context, w *bufio.Writer, src gitsource.Source) error {
	builder, err := build.NewBuilder(w, build.Options{MaxSourceBytes: math.MaxInt64})
	if err != nil {
		return err
	}
	if err := builder.AddRepo(docstore.Repo{Name: b.name, Branches: src.Branches()}); err != nil {
		return err
	}
	for doc, err := range src.Documents(ctx) {
		if err != nil {
			return err
		}
		if err := b.add(builder, doc); err != nil {
			return err
		}
	}
	b.result, err = builder.Close()
	return err
}

func (b *shardBuild) add(builder *build.Builder, doc *build.Document) error {
	b.read += uint64(len(doc.Content))
	if b.progress != nil {
		_ = b.progress.Add(1) // drawing fails only when the terminal is gone
	}
	return builder.Add(*doc)
}

// report prints what was read and written, and how fast.
func (b *shardBuild) report(p Process, took time.Duration) error {
	if b.progress != nil {
		_ = b.progress.Finish() // as above
	}
	_, err := fmt.Fprintf(p.Out, "%s, %d found by name only\n%d bytes read (%s)\n%d shard bytes (%s, %.3f of the content)\n%.2f seconds (%s/s)\n",
		render.Count(b.result.Documents, "document", "documents"), b.result.Skipped, b.read, searchapi.Bytes(b.read),
		b.result.Size, searchapi.Bytes(uint64(b.result.Size)), float64(b.result.Size)/float64(max(b.result.ContentBytes, 1)),
		took.Seconds(), searchapi.Bytes(uint64(float64(b.read)/max(took.Seconds(), 1e-9))))
	return err
}
