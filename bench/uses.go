package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/build"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/trawl-search/trawl/bench/corpus"
	"github.com/trawl-search/trawl/bench/peer"
	"github.com/trawl-search/trawl/bench/report"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

// usesConfig configures measureUses.
type usesConfig struct {
	// Trawl is the program.
	Trawl string
	Seed  uint64
	// Tree is a folder whose uses are asked for, of one language, as imports and Universal Ctags resolve them. Without one, they are those of
	// Go's own packages, as go/types resolves them.
	Tree, Language string
	// Uses is how many uses are asked for.
	Uses int
	// Show writes those that are wrong.
	Show    bool
	Results string
	Out     io.Writer
	Args    []string
}

// usage is a use of a name, and where go/types says that it is defined.
type usage struct {
	name         string
	from, to     token.Position // with paths relative to the corpus
	kind         string
	exact, among bool // the first definition is the right one; or one of those shown
	took         time.Duration
}

// measureUses measures how often the first definition from a place is the one that a compiler finds. The tree is that of Go.
func measureUses(ctx context.Context, cfg usesConfig) (err error) {
	started := time.Now()
	repo, uses, err := cfg.uses(ctx)
	if err != nil {
		return err
	}
	random := rand.New(rand.NewPCG(cfg.Seed, 0))
	random.Shuffle(len(uses), func(i, j int) { uses[i], uses[j] = uses[j], uses[i] })
	all := len(uses)
	uses = uses[:min(len(uses), cfg.Uses)]
	if err := askUses(ctx, cfg, repo, uses); err != nil {
		return err
	}
	var text bytes.Buffer
	where := "Go's own packages, as go/types resolves them"
	if cfg.Tree != "" {
		where = filepath.Base(cfg.Tree) + ", " + cfg.Language + ", as imports and Universal Ctags resolve them"
	}
	fmt.Fprintf(&text, "Definitions from %d of %d uses in %s, %s\n\n", len(uses), all, where, started.UTC().Format("2006-01-02 15:04"))
	report.Host(ctx, &text, cfg.Args)
	var t report.Table
	t.Row("", "uses", "first", "among 10", "p50 ms", "p95 ms")
	kinds := []string{""}
	for _, u := range uses {
		if !slices.Contains(kinds, u.kind) {
			kinds = append(kinds, u.kind)
		}
	}
	slices.Sort(kinds)
	for _, kind := range kinds {
		var exact, among, n float64
		var took []float64
		for _, u := range uses {
			if kind != "" && u.kind != kind {
				continue
			}
			n++
			took = append(took, float64(u.took)/float64(time.Millisecond))
			if u.exact {
				exact++
			}
			if u.among {
				among++
			}
		}
		name := kind
		if name == "" {
			name = "all"
		}
		t.Row(name, fmt.Sprint(n), fmt.Sprintf("%.3f", exact/n), fmt.Sprintf("%.3f", among/n), fmt.Sprintf("%.2f", report.Percentile(took, 50)), fmt.Sprintf("%.2f", report.Percentile(took, 95)))
	}
	fmt.Fprintln(&text)
	t.Write(&text)
	fmt.Fprintf(cfg.Out, "%s", text.Bytes())
	if cfg.Results == "" {
		return nil
	}
	_, err = report.Save(cfg.Results, strings.TrimSuffix("uses-"+cfg.Language, "-"), started, map[string][]byte{".txt": text.Bytes()})
	return err
}

// uses are all uses, and the repo that they are in.
func (cfg *usesConfig) uses(ctx context.Context) (repo corpus.Repo, uses []usage, err error) {
	if cfg.Tree != "" {
		uses, err = usesByCtags(ctx, cfg.Tree, cfg.Language)
		return corpus.Repo{Name: filepath.Base(cfg.Tree), Dir: cfg.Tree}, uses, err
	}
	scratch, err := corpus.Scratch()
	if err != nil {
		return repo, nil, err
	}
	c, err := corpus.Find(ctx, "go", scratch, 1)
	if err != nil {
		return repo, nil, err
	}
	uses, err = usesIn(ctx, c.Repos[0].Dir)
	return c.Repos[0], uses, err
}

// askUses asks a Trawl for the definitions.
func askUses(ctx context.Context, cfg usesConfig, repo corpus.Repo, uses []usage) (err error) {
	dir, err := os.MkdirTemp("", "uses-")
	if err != nil {
		return fmt.Errorf("making a folder for the index: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	t, err := peer.IndexTrawl(ctx, cfg.Trawl, dir, corpus.Corpus{Name: repo.Name, Repos: []corpus.Repo{repo}}, func(string) {})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.Close()) }()
	search := searchv1.NewSearchServiceClient(t.Conn)
	for i := range uses {
		u := &uses[i]
		began := time.Now()
		resp, err := search.Definitions(ctx, &searchv1.DefinitionsRequest{
			Name: u.name, From: &searchv1.Place{Repo: repo.Name, Path: []byte(u.from.Filename), Line: uint32(u.from.Line), Column: uint32(u.from.Column)},
			Options: &searchv1.SearchOptions{MaxFiles: 10},
		})
		if u.took = time.Since(began); err != nil {
			return fmt.Errorf("asking for %s at %s: %w", u.name, u.from, err)
		}
		first := true
		for _, group := range resp.GetRepos() {
			for _, f := range group.GetFiles() {
				start := f.GetChunks()[0].GetRanges()[0].GetStart()
				if string(f.GetPath()) == u.to.Filename && int(start.GetLineNumber()) == u.to.Line {
					u.exact, u.among = u.exact || first, true
				}
				if first && cfg.Show && !(string(f.GetPath()) == u.to.Filename && int(start.GetLineNumber()) == u.to.Line) {
					fmt.Fprintf(cfg.Out, "%s %s at %s: %s:%d, not %s\n", u.kind, u.name, u.from, f.GetPath(), start.GetLineNumber(), u.to)
				}
				first = false
			}
		}
		if first && cfg.Show {
			fmt.Fprintf(cfg.Out, "%s %s at %s: nothing, not %s\n", u.kind, u.name, u.from, u.to)
		}
	}
	return nil
}

// usesIn are the uses of names in Go's packages whose definition has a name of its own outside of functions.
func usesIn(ctx context.Context, root string) (uses []usage, err error) {
	files := token.NewFileSet()
	imports := importer.ForCompiler(files, "source", nil)
	err = filepath.WalkDir(filepath.Join(build.Default.GOROOT, "src"), func(dir string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err //nolint:wrapcheck // of the caller
		}
		if slices.Contains([]string{"cmd", "testdata", "vendor", "builtin"}, d.Name()) {
			return filepath.SkipDir
		}
		pkg, err := build.ImportDir(dir, 0)
		if err != nil {
			return nil //nolint:nilerr // a folder without a package
		}
		var parsed []*ast.File
		for _, name := range pkg.GoFiles {
			f, err := parser.ParseFile(files, filepath.Join(dir, name), nil, 0)
			if err != nil {
				return fmt.Errorf("parsing %s: %w", name, err)
			}
			parsed = append(parsed, f)
		}
		info := &types.Info{Uses: map[*ast.Ident]types.Object{}}
		config := types.Config{Importer: imports, Error: func(error) {}}
		_, _ = config.Check(pkg.ImportPath, files, parsed, info) // what could be resolved
		for id, obj := range info.Uses {
			kind := kindOf(obj)
			if kind == "" || !obj.Pos().IsValid() {
				continue
			}
			u := usage{name: id.Name, kind: kind, from: files.Position(id.Pos()), to: files.Position(obj.Pos())}
			for _, p := range []*token.Position{&u.from, &u.to} {
				rel, err := filepath.Rel(root, p.Filename)
				if err != nil || strings.HasPrefix(rel, "..") {
					kind = ""
				}
				p.Filename = filepath.ToSlash(rel)
			}
			if kind != "" {
				uses = append(uses, u)
			}
		}
		return nil
	})
	slices.SortFunc(uses, func(a, b usage) int { return strings.Compare(a.from.String(), b.from.String()) })
	if err != nil {
		return nil, fmt.Errorf("reading Go's packages: %w", err)
	}
	return uses, nil
}

// kindOf is what kind of definition an object has; empty if it has none of its own outside of functions.
func kindOf(obj types.Object) string {
	kind := kindName(obj)
	if obj.Pkg() == nil || kind != "field" && kind != "method" && obj.Parent() != obj.Pkg().Scope() {
		return ""
	}
	return kind
}

func kindName(obj types.Object) string {
	switch o := obj.(type) {
	case *types.Const:
		return "constant"
	case *types.TypeName:
		return "type"
	case *types.Func:
		if o.Signature().Recv() != nil {
			return "method"
		}
		return "function"
	case *types.Var:
		if o.IsField() {
			return "field"
		}
		return "variable"
	}
	return ""
}
