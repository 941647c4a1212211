package cli

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/pflag"

	"github.com/trawl-search/trawl/cmd/trawl/internal/render"
	"github.com/trawl-search/trawl/internal/searchapi"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

// defaultPages is where `trawl up` serves pages by default.
const defaultPages = "http://127.0.0.1:7431"

// pagesFlag declares --pages, whose default may come from $TRAWL_PAGES.
func pagesFlag(flags *pflag.FlagSet, p Process, pages *string) {
	flags.StringVar(pages, "pages", p.env("TRAWL_PAGES"), "address of the router's pages, or $TRAWL_PAGES; default "+defaultPages+" if --addr is the default, too")
}

// pagesAt is the address of the pages of the router at addr, "" if unknown.
func pagesAt(pages, addr string) (string, error) {
	if pages == "" && addr == defaultAddress {
		pages = defaultPages
	}
	if pages == "" {
		return "", nil
	}
	u, err := url.Parse(pages)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.Fragment != "" {
		return "", usageError{fmt.Errorf("--pages is %q; want an address such as %s", pages, defaultPages)}
	}
	return strings.TrimSuffix(u.String(), "/"), nil
}

// links makes links to pages of files. It is nil if no links are wanted or the address of the pages is
// unknown.
func (p Process) links(when, pages, addr string) (render.Link, error) {
	wanted, err := p.forTerminal("--hyperlinks", when)
	if err != nil {
		return nil, err
	}
	base, err := pagesAt(pages, addr)
	switch {
	case err != nil:
		return nil, err
	case wanted && base == "" && when == "always":
		return nil, usageError{errors.New("--hyperlinks=always needs --pages, the address of the router's pages")}
	case !wanted || base == "":
		return nil, nil //nolint:nilnil // no links
	}
	return func(f *searchv1.FileMatch, line uint32) string {
		rev := ""
		if len(f.GetBranches()) > 0 {
			rev = f.GetBranches()[0]
		}
		return base + searchapi.PageOfLine(f.GetRepo(), rev, string(f.GetPath()), int(line))
	}, nil
}

// fileLinks makes links to files of this machine. It is nil if no links are wanted.
func (p Process) fileLinks(when string) (link func(path string) string, err error) {
	wanted, err := p.forTerminal("--hyperlinks", when)
	if err != nil || !wanted {
		return nil, err
	}
	host, err := os.Hostname() // a terminal may show another machine
	if err != nil {
		return nil, fmt.Errorf("finding the name of this machine for hyperlinks: %w", err)
	}
	return func(path string) string {
		whole, err := filepath.Abs(path)
		if err != nil {
			return path
		}
		return render.Hyperlink((&url.URL{Scheme: "file", Host: host, Path: whole}).String(), path)
	}, nil
}
