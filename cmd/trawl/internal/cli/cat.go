package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/trawl-search/trawl/cmd/trawl/internal/render"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

func newCat(p Process) *cobra.Command {
	var (
		addr   routerAt
		branch string
	)
	cmd := &cobra.Command{
		Use:   "cat REPO:PATH...",
		Short: "Print files as they are indexed",
		Long: `Print files as they are indexed, named as trawl search prints them, or by their own bytes:

  trawl search -l -0 -F 'struct pond' | xargs -0 trawl cat

On a terminal, control characters are escaped. Any other output gets the bytes as they are.`,
		Args: usageArgs(cobra.MinimumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.paged(cmd.Context(), func(p Process) error {
				return withClient(cmd.Context(), addr, func(ctx context.Context, c client) error {
					for _, name := range args {
						if err := cat(ctx, c, p, name, branch); err != nil {
							return err
						}
					}
					return nil
				})
			})
		},
	}
	addressFlag(cmd.Flags(), p, &addr)
	cmd.Flags().StringVarP(&branch, "branch", "b", "", "the file on this branch; default the repo's first branch")
	return cmd
}

// cat prints the file named REPO:PATH.
func cat(ctx context.Context, c client, p Process, name, branch string) error {
	err := forFile(name, branch, func(req *searchv1.GetFileRequest) error { return printFile(ctx, c, p, req) })
	return withNearest(ctx, c, name, err)
}

// forFile calls do for the file named REPO:PATH, in its own bytes or as it is printed. Repos and paths may hold colons: the first
// split that names a file counts.
func forFile(name, branch string, do func(*searchv1.GetFileRequest) error) error {
	missing := usageError{fmt.Errorf("%q names no file: want REPO:PATH, as trawl search -l prints them", name)}
	var err error = missing
	for _, name := range slices.Compact([]string{name, render.Meant(name)}) {
		for at := range len(name) {
			if name[at] != ':' || at == 0 || at == len(name)-1 || !utf8.ValidString(name[:at]) {
				continue
			}
			req := &searchv1.GetFileRequest{Repo: name[:at], Path: []byte(name[at+1:]), Branch: branch}
			if err = do(req); status.Code(err) != codes.NotFound {
				return err
			}
		}
	}
	if errors.Is(err, missing) {
		return missing
	}
	return fmt.Errorf("%s: %w", render.Safe([]byte(name)), err)
}

// printFile prints a file, which may take several requests.
func printFile(ctx context.Context, c client, p Process, req *searchv1.GetFileRequest) error {
	var blob []byte
	for {
		part, err := c.search.GetFile(ctx, req)
		if err != nil {
			return err
		}
		if req.Offset > 0 && !bytes.Equal(blob, part.GetBlob()) {
			return errors.New("the file was indexed anew while it was printed: run the command again")
		}
		if err := printContent(p.Out, part.GetContent()); err != nil {
			return err
		}
		blob = part.GetBlob()
		req.Offset += uint64(len(part.GetContent()))
		if len(part.GetContent()) == 0 || req.Offset >= part.GetSizeBytes() {
			return nil
		}
	}
}

// printContent prints a part of a file, on a terminal without its control characters.
func printContent(out io.Writer, content []byte) error {
	if !isTerminal(out) {
		_, err := out.Write(content)
		return err
	}
	var b strings.Builder
	for line := range bytes.Lines(content) {
		text, ended := bytes.CutSuffix(line, []byte("\n"))
		b.WriteString(render.Safe(bytes.TrimSuffix(text, []byte("\r"))))
		if ended {
			b.WriteByte('\n')
		}
	}
	_, err := io.WriteString(out, b.String())
	return err
}
