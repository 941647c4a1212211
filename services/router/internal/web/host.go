package web

import (
	"strings"

	"github.com/trawl-search/trawl/internal/codehost"
	ingestv1 "github.com/trawl-search/trawl/proto/trawl/ingest/v1"
)

// host is the pages of a repo at its Git host.
type host struct {
	// Repo is an address; empty if unknown.
	Repo string
	// Pages of a file at the commit; nil if unknown.
	File, Blame, History *hostPage
}

// hostPage is a page of a file at its host.
type hostPage struct {
	// URL is its address. In AtLine codehost.LinkLine stands for a line.
	URL, AtLine string
}

// hostOf are the pages of a path at the host that a repo was cloned from.
func hostOf(sources []*ingestv1.Source, clone, commit, path string) host {
	if strings.HasSuffix(path, "/") {
		path = ""
	}
	p := codehost.PagesOf(sources, clone, commit, path)
	if len(p.Repo) > maxURL {
		p.Repo = ""
	}
	return host{p.Repo, newHostPage(p.File), newHostPage(p.Blame), newHostPage(p.History)}
}

// newHostPage leads to no line where the address has it as its fragment, and else to the first.
func newHostPage(at string) *hostPage {
	if at == "" || len(at) > maxURL {
		return nil
	}
	address, fragment, _ := strings.Cut(at, "#")
	if !strings.Contains(fragment, codehost.LinkLine) {
		address = at
	}
	return &hostPage{strings.ReplaceAll(address, codehost.LinkLine, "1"), at}
}
