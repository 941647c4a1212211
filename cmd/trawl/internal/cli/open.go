package cli

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/trawl-search/trawl/internal/searchapi"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

func newOpen(p Process) *cobra.Command {
	var (
		addr          routerAt
		pages, branch string
	)
	cmd := &cobra.Command{
		Use:   "open REPO[:PATH[:LINE]]",
		Short: "Open the page of a repo, a folder, a file or a line in a browser",
		Long: `Open the page of a repo, a folder, a file or a line in a browser, named as trawl search prints them:

  trawl open github.com/org/name:README.md
  trawl open "$(trawl search -F 'struct pond' | fzf)"

The browser is $BROWSER, or that of the desktop. Without one the address is printed.`,
		Args: named(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			base, err := pagesAt(pages, addr.addr)
			if err != nil {
				return err
			}
			if base == "" {
				return usageError{errors.New("the address of the router's pages is unknown: set it with --pages")}
			}
			var at string
			err = withClient(cmd.Context(), addr, func(ctx context.Context, c client) (err error) {
				at, err = pageOf(ctx, c, args[0], branch)
				return err
			})
			if err != nil {
				return err
			}
			return p.browse(cmd.Context(), base+at)
		},
	}
	addressFlag(cmd.Flags(), p, &addr)
	pagesFlag(cmd.Flags(), p, &pages)
	cmd.Flags().StringVarP(&branch, "branch", "b", "", "the page of this branch; default the repo's first branch, or the first that has the file")
	completeNames(cmd, &addr)
	return cmd
}

// triedLines bounds at how many numbers in a name a file is looked for before them.
const triedLines = 4

// pageOf is the address of the page of REPO:PATH, a file or a folder, or of a line of it, which may be followed by its text, or of a repo.
func pageOf(ctx context.Context, c client, name, branch string) (at string, err error) {
	var found *searchv1.GetFileRequest
	exists := func(req *searchv1.GetFileRequest) error {
		found = req
		_, err := c.search.GetFile(ctx, req)
		return err
	}
	for at, tried := 0, 0; at < len(name) && tried < triedLines; at++ {
		if name[at] != ':' {
			continue
		}
		digits, _, _ := strings.Cut(name[at+1:], ":")
		line, err := strconv.ParseUint(digits, 10, 31)
		if err != nil || line == 0 {
			continue
		}
		if tried++; forFile(name[:at], branch, exists) == nil {
			return searchapi.PageOfLine(found.GetRepo(), found.GetBranch(), string(found.GetPath()), int(line)), nil
		}
	}
	err = forFile(name, branch, exists)
	switch {
	case err == nil:
		return searchapi.PageOf(found.GetRepo(), found.GetBranch(), string(found.GetPath())), nil
	case searchapi.FieldOf(err) == "path":
		folder := forFile(name, branch, func(req *searchv1.GetFileRequest) error {
			found = req
			_, err := c.search.ListTree(ctx, &searchv1.ListTreeRequest{Repo: req.GetRepo(), Path: req.GetPath(), Branch: req.GetBranch(), MaxEntries: 1})
			return err
		})
		if folder == nil {
			return searchapi.PageOf(found.GetRepo(), found.GetBranch(), strings.TrimSuffix(string(found.GetPath()), "/")+"/"), nil
		}
	}
	// The name of a repo may have a colon, as with a port.
	_, none := c.search.ListTree(ctx, &searchv1.ListTreeRequest{Repo: name, Branch: branch, MaxEntries: 1})
	switch {
	case none == nil:
		return searchapi.PageOf(name, branch, ""), nil
	case found == nil || status.Code(none) != codes.NotFound:
		err = none
	}
	return "", missing(err)
}

// browse opens an address in a browser, or prints it if there is none.
func (p Process) browse(ctx context.Context, address string) error {
	browser := p.env("BROWSER")
	if browser == "" && p.env("DISPLAY")+p.env("WAYLAND_DISPLAY") != "" {
		if _, err := exec.LookPath("xdg-open"); err == nil {
			browser = "xdg-open"
		}
	}
	if browser == "" {
		_, err := fmt.Fprintln(p.Out, address)
		return err
	}
	cmd := exec.CommandContext(ctx, browser, address)
	cmd.Env, cmd.Stdout, cmd.Stderr = p.Environ, p.Out, p.Err
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("opening %s with %s, from $BROWSER or the desktop: %w", address, browser, err)
	}
	return nil
}
