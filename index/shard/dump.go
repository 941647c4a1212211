package shard

import (
	"context"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/trawl-search/trawl/index/docstore"
	"github.com/trawl-search/trawl/index/format"
)

// Dump describes the shard for people: versions, sections with their sizes and
// share of the content, and the repos.
func (s *Shard) Dump(ctx context.Context, w io.Writer) error {
	tw := tabwriter.NewWriter(w, 0, 8, 2, ' ', tabwriter.AlignRight)
	versions := s.file.Versions()
	fmt.Fprintf(w, "%s: %d bytes, format version %d (readable from version %d on)\n", s.Name(), s.Size(), versions.Writer, versions.MinReader)
	fmt.Fprintf(w, "%d documents, %d blobs, %d bytes of content, index / content %.3f\n\n",
		s.Documents(), s.Content.Blobs(), s.ContentBytes(), float64(s.Size())/float64(max(s.ContentBytes(), 1)))
	fmt.Fprintln(tw, "section\toffset\tbytes\t/ content\tflags\t")
	for _, sec := range s.file.Sections() {
		fmt.Fprintf(tw, "%s\t%d\t%d\t%.4f\t%s\t\n", sec.Tag, sec.Offset, sec.Length,
			float64(sec.Length)/float64(max(s.ContentBytes(), 1)), flagWords(sec.Flags))
	}
	if err := tw.Flush(); err != nil {
		return fmt.Errorf("dump shard: %w", err)
	}
	return s.Guard(func() error { return s.dumpRepos(ctx, w) })
}

func (s *Shard) dumpRepos(ctx context.Context, w io.Writer) error {
	for i := range s.Docs.Repos() {
		stats, err := s.Stats(i, docstore.Set{}, 0, ctx.Err)
		if err != nil {
			return err
		}
		repo := stats.Repo
		fmt.Fprintf(w, "\nrepo %s: %d documents, %d found by name only, %d bytes of content\n",
			repo.Name, stats.Documents, stats.Skipped, stats.ContentBytes)
		if repo.Rank > 0 {
			fmt.Fprintf(w, "  rank %d of %d\n", repo.Rank, docstore.MaxRank)
		}
		for _, b := range repo.Branches {
			fmt.Fprintf(w, "  branch %s at %s\n", b.Name, b.Commit)
		}
		for _, l := range stats.Languages {
			fmt.Fprintf(w, "  %-20s %8d documents %12d bytes\n", l.Language, l.Documents, l.Bytes)
		}
	}
	return nil
}

func flagWords(f format.Flags) string {
	if f&format.Required != 0 {
		return "required"
	}
	return "optional"
}
