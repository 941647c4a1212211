package cli

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"regexp"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

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
		Short: "Open the page of a repo, a file or a line in a browser",
		Long: `Open the page of a repo, a file or a line in a browser, named as trawl search prints them:

  trawl open github.com/org/name:README.md
  trawl open "$(trawl search -F 'struct pond' | fzf)"

The browser is $BROWSER, or that of the desktop. Without one the address is printed.`,
		Args: usageArgs(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			base, err := pagesAt(pages, addr.addr)
			if err != nil {
				return err
			}
			if base == "" {
				return usageError{errors.New("the address of the router's pages is unknown: set it with --pages")}
			}
			at := args[0]
			if strings.Contains(at, ":") {
				err = withClient(cmd.Context(), addr, func(ctx context.Context, c client) (err error) {
					at, err = pageOf(ctx, c, args[0], branch)
					return err
				})
			} else {
				at = searchapi.PageOf(at, branch, "")
			}
			if err != nil {
				return err
			}
			return p.browse(cmd.Context(), base+at)
		},
	}
	addressFlag(cmd.Flags(), p, &addr)
	pagesFlag(cmd.Flags(), p, &pages)
	cmd.Flags().StringVarP(&branch, "branch", "b", "", "the page of this branch; default the repo's first branch")
	return cmd
}

var withLine = regexp.MustCompile(`^(.*?[^:]):([1-9][0-9]{0,8})(?::.*)?$`)

// pageOf is the address of the page of REPO:PATH, or of a line of it, which may be followed by its text.
func pageOf(ctx context.Context, c client, name, branch string) (at string, err error) {
	var found *searchv1.GetFileRequest
	exists := func(req *searchv1.GetFileRequest) error {
		found = req
		_, err := c.search.GetFile(ctx, req)
		return err
	}
	if m := withLine.FindStringSubmatch(name); m != nil && forFile(m[1], branch, exists) == nil {
		line, err := strconv.Atoi(m[2])
		return searchapi.PageOfLine(found.GetRepo(), branch, string(found.GetPath()), line), err
	}
	if err := forFile(name, branch, exists); err != nil {
		return "", withNearest(ctx, c, name, err)
	}
	return searchapi.PageOf(found.GetRepo(), branch, string(found.GetPath())), nil
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
