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
	"github.com/trawl-search/trawl/internal/searchapi"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

func newCat(p Process) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "cat REPO:PATH...",
		Short: "Print files as they are indexed",
		Long: `Print files as they are indexed, named as trawl search prints them, also REPO@BRANCH:PATH, or by their own bytes:

  trawl search -l -0 -F 'struct pond' | xargs -0 trawl cat

A file that cannot be printed is reported, and the others are printed. On a terminal, control characters are escaped. Any other output gets the bytes as they are.`,
		Args: usageArgs(cobra.MinimumNArgs(1)),
	}
	branch := cmd.Flags().StringP("branch", "b", "", "the file on this branch; default the repo's first branch that has it")
	return calling(p, cmd, func(ctx context.Context, c client, args []string) error {
		return p.paged(ctx, func(p Process) error { return catAll(ctx, c, p, args, *branch) })
	})
}

// catAll prints files. It reports those that cannot be printed and goes on with the others.
func catAll(ctx context.Context, c client, p Process, names []string, branch string) error {
	worst := 0
	for _, name := range names {
		err := forFile(name, branch, func(req *searchv1.GetFileRequest) error { return printFile(ctx, c, p, req) })
		err = missing(err)
		var ofFile exitStatus
		if errors.As(err, new(usageError)) {
			ofFile = exitStatus{2, err}
		} else if err != nil && !errors.As(err, &ofFile) {
			return err
		}
		if ofFile.err != nil {
			fmt.Fprintf(p.Err, "trawl: %s\n", explain(ofFile.err))
			worst = max(worst, ofFile.status)
		}
	}
	if worst > 0 {
		return exitStatus{status: worst}
	}
	return nil
}

// missing gives the error of a file or repo that does not exist, which has the nearest names, its own exit status.
func missing(err error) error {
	if status.Code(err) == codes.NotFound {
		return exitStatus{1, err}
	}
	return err
}

// forFile calls do for the file named REPO:PATH, or REPO@BRANCH:PATH if no branch is given, in its own bytes or as it is printed. Repos and paths may hold colons: the first
// split that names a file counts. If none does, the error is that of a split whose repo exists, or else of the first.
func forFile(name, branch string, do func(*searchv1.GetFileRequest) error) error {
	var missing error
	for _, name := range slices.Compact([]string{name, render.Meant(name)}) {
		for at := range len(name) {
			if name[at] != ':' || at == 0 || at == len(name)-1 || !utf8.ValidString(name[:at]) {
				continue
			}
			req := &searchv1.GetFileRequest{Repo: name[:at], Path: []byte(name[at+1:]), Branch: branch}
			err := do(req)
			if repo, on, ok := strings.Cut(req.Repo, "@"); ok && branch == "" && searchapi.FieldOf(err) == "repo" {
				err = do(&searchv1.GetFileRequest{Repo: repo, Path: req.Path, Branch: on})
			}
			if status.Code(err) != codes.NotFound || searchapi.FieldOf(err) == "branch" {
				return err
			}
			if missing == nil || searchapi.FieldOf(missing) == "repo" && searchapi.FieldOf(err) == "path" {
				missing = err
			}
		}
	}
	if missing == nil {
		return usageError{fmt.Errorf("%q names no file: want REPO:PATH, with a colon between them, as trawl search -l prints them", name)}
	}
	return fmt.Errorf("%s: %w", render.Safe([]byte(name)), missing)
}

// printFile prints a file, which may take several requests.
func printFile(ctx context.Context, c client, p Process, req *searchv1.GetFileRequest) error {
	var blob []byte
	for {
		part, err := c.search.GetFile(ctx, req)
		if err != nil {
			return err
		}
		if skip := part.GetSkipReason(); skip != searchv1.SkipReason_SKIP_REASON_UNSPECIFIED {
			return exitStatus{1, fmt.Errorf("%s:%s is not printed, since its content is not indexed: %s, %s", render.Safe([]byte(req.Repo)), render.Name(req.Path),
				searchapi.SkipReason(skip), searchapi.Bytes(part.GetSizeBytes()))}
		}
		if req.Offset > 0 && !bytes.Equal(blob, part.GetBlob()) {
			return errors.New("the file was indexed again while it was printed: run the command again")
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
