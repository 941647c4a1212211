package serve_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/trawl-search/trawl/index/format"
	"github.com/trawl-search/trawl/index/search"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
	"github.com/trawl-search/trawl/services/searcher/internal/serve"
)

// Tree has a folder with one file for each shard, and a file named like the shard.
func (a act) Tree(_ context.Context, repo string, of search.Options, opts search.TreeOptions) (*search.Tree, error) {
	if repo == "hidden" || of.Repos != nil && !of.Repos(0) {
		return &search.Tree{}, nil
	}
	if a == "damaged" {
		return nil, &format.CorruptError{File: "f", Section: "docs", Reason: "test"}
	}
	tree := &search.Tree{}
	for _, e := range []search.TreeEntry{{Path: []byte("folder/"), Files: 1}, {Path: []byte(repo + "-" + string(a)), Size: 3}} {
		switch {
		case string(e.Path) <= string(opts.After):
		case len(tree.Entries) == opts.MaxEntries:
			tree.More = true
		default:
			tree.Entries = append(tree.Entries, e)
		}
	}
	return tree, nil
}

// TestListTree: the parts of a folder in several shards are one, and the answer accounts for the shards.
func TestListTree(t *testing.T) {
	s := start(t, "good", "error", "damaged")
	for name, c := range map[string]struct {
		repo, after string
		most        uint32
		shards      []string
		want        string
	}{
		"all":                   {"r", "", 0, []string{"good", "error"}, "folder/=2 r-error=0 r-good=0 more=false complete=true"},
		"one":                   {"r", "", 1, []string{"good", "error"}, "folder/=2 more=true complete=true"},
		"two":                   {"r", "", 2, []string{"good", "error"}, "folder/=2 r-error=0 more=true complete=true"},
		"after the folder":      {"r", "folder/", 1, []string{"good", "error"}, "r-error=0 more=true complete=true"},
		"not allowed":           {"hidden", "", 0, []string{"good"}, "more=false complete=true"},
		"a shard is not held":   {"r", "", 0, []string{"good", "stranger"}, "folder/=1 r-good=0 more=false complete=false"},
		"a shard is damaged":    {"r", "", 0, []string{"good", "damaged"}, "folder/=1 r-good=0 more=false complete=false"},
		"another one is not it": {"r", "", 0, []string{"stranger"}, "more=false complete=false"},
	} {
		plan := planOf("r", c.shards...)
		plan.After = &searchv1.OrderKey{Path: []byte(c.after)}
		resp, err := s.ListTree(t.Context(), &searchv1.ListTreeRequest{Repo: c.repo, Branch: "main", MaxEntries: c.most, Plan: plan})
		got := ""
		for _, e := range resp.GetEntries() {
			got += fmt.Sprintf("%s=%d ", e.Path, e.Files)
		}
		if got += fmt.Sprintf("more=%v complete=%v", resp.GetMore(), resp.GetCoverage().GetComplete()); err != nil || got != c.want {
			t.Errorf("%s: %s, %v; want %s", name, got, err, c.want)
		}
	}
}

// TestEveryMethodHasASeries: the time of each method is exported before the method is first called.
func TestEveryMethodHasASeries(t *testing.T) {
	registry := prometheus.NewRegistry()
	serve.NewMetrics(registry)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	methods := map[string]bool{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				if f.GetName() == "trawl_searcher_query_seconds" && l.GetName() == "method" {
					methods[l.GetValue()] = true
				}
			}
		}
	}
	for _, method := range []string{"stream_search", "stream_list", "get_file", "list_tree"} {
		if !methods[method] {
			t.Errorf("%s has no series among %v", method, methods)
		}
	}
}
