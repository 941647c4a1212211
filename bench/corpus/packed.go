package corpus

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
)

// packed cuts the Go tree and the module cache into small repos: each folder
// with files and without folders is one. Files next to folders are omitted, so
// that no repo is inside another. All of it is real code, and the sizes of the
// pieces are real too.
func packed(ctx context.Context, limit int) ([]Repo, error) {
	tree, err := goEnv(ctx, "GOROOT")
	if err != nil {
		return nil, err
	}
	cache, err := goEnv(ctx, "GOMODCACHE")
	if err != nil {
		return nil, err
	}
	return leaves(limit, Repo{"go", filepath.Join(tree, "src")}, Repo{"modules", cache})
}

// leaves cuts the roots and returns the first pieces by name; with limit 0,
// all.
func leaves(limit int, roots ...Repo) ([]Repo, error) {
	var c cutter
	for _, root := range roots {
		if err := c.cut(root); err != nil {
			return nil, fmt.Errorf("cutting %s: %w", root.Dir, err)
		}
	}
	slices.SortFunc(c.repos, func(a, b Repo) int { return cmp.Compare(a.Name, b.Name) })
	if limit > 0 && len(c.repos) > limit {
		c.repos = c.repos[:limit]
	}
	return c.repos, nil
}

type cutter struct{ repos []Repo }

func (c *cutter) cut(folder Repo) error {
	entries, err := os.ReadDir(folder.Dir)
	if err != nil {
		return err
	}
	files, folders := 0, 0
	for _, e := range entries {
		switch {
		case e.IsDir():
			folders++
			// The archives of the module cache contain the same code again.
			if folder.Name == "modules" && e.Name() == "cache" {
				continue
			}
			if err := c.cut(Repo{path.Join(folder.Name, e.Name()), filepath.Join(folder.Dir, e.Name())}); err != nil {
				return err
			}
		case e.Type().IsRegular():
			files++
		}
	}
	if files > 0 && folders == 0 {
		c.repos = append(c.repos, folder)
	}
	return nil
}
