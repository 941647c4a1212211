package relevance

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/trawl-search/trawl/bench/corpus"
	"github.com/trawl-search/trawl/bench/peer"
	"github.com/trawl-search/trawl/bench/report"
)

// zoektCase is one of the queries that zoekt tests its ranking with, in internal/e2e/e2e_rank_test.go of zoekt, and the rank that its
// test records for the default order over five repos: 0 if the target is not found.
type zoektCase struct {
	query, repo, path string
	recorded          int
}

const (
	goRepo          = "github.com/golang/go"
	concRepo        = "github.com/sourcegraph/conc"
	zoektRepo       = "github.com/sourcegraph/zoekt"
	codyRepo        = "github.com/sourcegraph/cody-public-snapshot"
	sourcegraphRepo = "github.com/sourcegraph/sourcegraph-public-snapshot"
)

var zoektCases = []zoektCase{
	{"test server", goRepo, "src/net/http/httptest/server.go", 1},
	{"bytes buffer", goRepo, "src/bytes/buffer.go", 1},
	{"bufio buffer", goRepo, "src/bufio/scan.go", 2},
	{`time compare\(`, goRepo, "src/time/time.go", 1},
	{"graphql type User", sourcegraphRepo, "cmd/frontend/graphqlbackend/schema.graphql", 1},
	{"Get database/user", sourcegraphRepo, "internal/database/users.go", 3},
	{"InternalDoer", sourcegraphRepo, "internal/httpcli/client.go", 1},
	{"Repository metadata Write rbac", sourcegraphRepo, "internal/rbac/constants.go", 0},
	{"generate unit test", codyRepo, "lib/shared/src/chat/recipes/generate-test.ts", 11},
	{"r:cody sourcegraph url", codyRepo, "lib/shared/src/sourcegraph-api/graphql/client.ts", 1},
	{"zoekt searcher", zoektRepo, "api.go", 1},
	{"assets are not configured for this binary", sourcegraphRepo, "ui/assets/assets.go", 1},
	{"sourcegraph/server docker image build", sourcegraphRepo, "dev/tools.go", 14},
	{"bufio flush writer", goRepo, "src/net/http/transfer.go", 25},
	{"coverage data writer", goRepo, "src/internal/coverage/encodecounter/encode.go", 13},
	{"WaitGroup", concRepo, "waitgroup.go", 1},
}

// casePins are the repos of the cases at the commits that zoekt's test takes. Go's own is that of the toolchain instead, which is at
// hand everywhere.
var casePins = []pinned{
	{concRepo, "https://github.com/sourcegraph/conc", "5f936abd7ae87036af1f75c95fb9d0daaf00116b"},
	{zoektRepo, "https://github.com/sourcegraph/zoekt", "ef907c2371176aa3f97713d5bf182983ef090c6a"},
	{codyRepo, "https://github.com/sourcegraph/cody-public-snapshot", "vscode-v0.14.5"},
	{sourcegraphRepo, "https://github.com/sourcegraph/sourcegraph-public-snapshot", "v5.2.2"},
}

// Cases measures zoekt's own cases, and writes a dated result. Cases whose repo is not among cfg.Repos, by the last part of its name, are left out.
func Cases(ctx context.Context, cfg Config) (err error) {
	started := time.Now()
	dir, err := os.MkdirTemp("", "relevance-")
	if err != nil {
		return fmt.Errorf("making a folder for the repos: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	repos, version, err := prepareCases(ctx, cfg.Repos, filepath.Join(dir, "src"))
	if err != nil {
		return err
	}
	cases := casesIn(repos)
	queries := make([]known, len(cases))
	for i, c := range cases {
		queries[i] = known{query: c.query, targets: []string{c.repo + "/" + c.path}}
	}
	engines, webserver, err := askAll(ctx, &cfg, repos, dir, queries)
	if err != nil {
		return err
	}
	var text bytes.Buffer
	fmt.Fprintf(&text, "%d of the %d cases of zoekt's ranking test, %s\n\n", len(cases), len(zoektCases), started.UTC().Format("2006-01-02 15:04"))
	report.Host(ctx, &text, cfg.Args)
	if webserver != "" {
		fmt.Fprintf(&text, "  zoekt     %s, with ctags\n", peer.ZoektVersion(ctx, webserver))
	}
	fmt.Fprintf(&text, "  repos     %s: %s", goRepo, version)
	for _, p := range casePins {
		if slices.ContainsFunc(repos.Repos, func(r corpus.Repo) bool { return r.Name == p.name }) {
			fmt.Fprintf(&text, ", %s: %.12s", p.name, p.commit)
		}
	}
	text.WriteString("\n")
	writeCases(&text, cases, engines)
	figures := report.Figures{report.AtLeast("mean reciprocal rank", measure(engines[0].ranks).mrr, neededCases, "")}
	figures[0].Corpus = fmt.Sprintf("%d of zoekt's %d cases", len(cases), len(zoektCases))
	return save(ctx, &cfg, "zoekt-cases", started, text.Bytes(), figures)
}

// prepareCases writes the files of the repos that are there into a folder.
func prepareCases(ctx context.Context, repos, dir string) (c corpus.Corpus, version string, err error) {
	c.Name = "zoekt's cases"
	add := func(name string) (to string, err error) {
		to = filepath.Join(dir, filepath.FromSlash(name))
		c.Repos = append(c.Repos, corpus.Repo{Name: name, Dir: to})
		return to, os.MkdirAll(to, 0o777)
	}
	out, err := exec.CommandContext(ctx, "go", "env", "GOROOT", "GOVERSION").Output()
	if err != nil {
		return c, "", fmt.Errorf("asking go for its source: %w", err)
	}
	root, version, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
	to, err := add(goRepo)
	if err != nil {
		return c, "", fmt.Errorf("making a folder for the source of Go: %w", err)
	}
	for _, folder := range []string{"src", "test"} {
		if err := os.CopyFS(filepath.Join(to, folder), os.DirFS(filepath.Join(root, folder))); err != nil {
			return c, "", fmt.Errorf("copying the source of Go: %w", err)
		}
	}
	for _, p := range casePins {
		from := filepath.Join(repos, filepath.Base(p.name))
		if _, err := os.Stat(from); err != nil {
			continue // its cases are left out, and the result says so
		}
		to, err := add(p.name)
		if err != nil {
			return c, "", fmt.Errorf("making a folder for %s: %w", p.name, err)
		}
		if err := p.export(ctx, from, to); err != nil {
			return c, "", err
		}
	}
	slices.SortFunc(c.Repos, func(a, b corpus.Repo) int { return cmp.Compare(a.Name, b.Name) })
	return c, version, nil
}

// casesIn are those whose repo is there.
func casesIn(c corpus.Corpus) (cases []zoektCase) {
	for _, known := range zoektCases {
		if slices.ContainsFunc(c.Repos, func(r corpus.Repo) bool { return r.Name == known.repo }) {
			cases = append(cases, known)
		}
	}
	return cases
}

// writeCases writes the rank of each target, and below what all ranks come to. The last column is what zoekt's test records.
func writeCases(w io.Writer, cases []zoektCase, engines []*engine) {
	columns := slices.Clone(engines)
	recorded := &engine{name: "zoekt's record"}
	for _, c := range cases {
		recorded.ranks = append(recorded.ranks, c.recorded)
	}
	columns = append(columns, recorded)
	var t report.Table
	header := []string{"rank of the target"}
	for _, e := range columns {
		header = append(header, e.name)
	}
	t.Row(header...)
	for i, c := range cases {
		cells := []string{c.query}
		for _, e := range columns {
			cells = append(cells, strconv.Itoa(e.ranks[i]))
		}
		t.Row(cells...)
	}
	for n, what := range []string{"mean reciprocal rank", "first, percent", "among the first 5"} {
		cells := []string{what}
		for _, e := range columns {
			m := measure(e.ranks)
			cells = append(cells, []string{fmt.Sprintf("%.3f", m.mrr), fmt.Sprintf("%.0f", m.first[0]), fmt.Sprintf("%.0f", m.first[1])}[n])
		}
		t.Row(cells...)
	}
	fmt.Fprintln(w)
	t.Write(w)
	for _, c := range zoektCases {
		if !slices.Contains(cases, c) {
			fmt.Fprintf(w, "left out: %s (%s)\n", c.query, c.repo)
		}
	}
}
