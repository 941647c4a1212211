// Package corpus finds the trees that Trawl is measured on, and downloads missing ones through the
// clients of their registries. It samples queries from them: the same seed on the same files gives
// the same queries. Whether words are rare or common depends on a sample of the files, and no
// engine decides it.
package corpus

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// KubernetesModule has a version, because figures of different versions cannot be compared.
const KubernetesModule = "k8s.io/kubernetes@v1.36.3"

// Repo is one folder that is indexed as one repository.
type Repo struct{ Name, Dir string }

// Corpus is the input of one run. Repos are in order of name.
type Corpus struct {
	Name  string
	Repos []Repo
	// Queries were written by hand; without any, queries are sampled.
	Queries []Query
}

// Bytes returns the number and the total size of the corpus's files, as Git has them.
func (c *Corpus) Bytes(ctx context.Context) (files int, sum int64, err error) {
	for _, r := range c.Repos {
		err := r.walk(ctx, func(path string) error {
			info, err := os.Stat(path)
			if err == nil {
				files, sum = files+1, sum+info.Size()
			}
			return err //nolint:wrapcheck // below
		})
		if err != nil {
			return 0, 0, fmt.Errorf("measuring %s: %w", r.Dir, err)
		}
	}
	return files, sum, nil
}

// Label returns the name, with the number of repos if there are several, because figures of
// different numbers of repos cannot be compared.
func (c *Corpus) Label() string {
	if len(c.Repos) < 2 {
		return c.Name
	}
	return fmt.Sprintf("%s, %d repos", c.Name, len(c.Repos))
}

// Names lists the corpora, the quickest first.
func Names() []string {
	return []string{"go", "kubernetes", "modules", "packed", "unicode", "mixed", "linux"}
}

// Named returns the corpora that a list means: names and folders, with commas in between, or "all".
func Named(list string) []string {
	if list == "all" {
		return Names()
	}
	return strings.Split(list, ",")
}

// Each measures the corpora that a name means, one after the other. If one fails, it
// returns what was measured before, with the error.
func Each[M any](name string, measure func(name string) (M, error)) (all []M, err error) {
	for _, name := range Named(name) {
		m, err := measure(name)
		if err != nil {
			return all, fmt.Errorf("measuring %s: %w", name, err)
		}
		all = append(all, m)
	}
	return all, nil
}

// Scratch makes the folder in the user's cache that keeps unpacked corpora.
func Scratch() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("finding the cache folder: %w", err)
	}
	scratch := filepath.Join(cache, "trawl", "bench")
	if err := os.MkdirAll(scratch, 0o777); err != nil {
		return "", fmt.Errorf("making the cache folder: %w", err)
	}
	return scratch, nil
}

// Find returns a corpus by name, or that of a folder if the name has a slash. Cache is the folder where an unpacked
// corpus is kept, maxRepos bounds the modules, or the pieces of the corpus
// packed, that are taken; 0 means all.
func Find(ctx context.Context, name, cache string, maxRepos int) (Corpus, error) {
	if strings.Contains(name, "/") {
		return folder(name)
	}
	var repos []Repo
	var err error
	switch name {
	case "go":
		repos, err = goTree(ctx)
	case "kubernetes":
		repos, err = kubernetes(ctx)
	case "modules":
		repos, err = modules(ctx, maxRepos)
	case "packed":
		repos, err = packed(ctx, maxRepos)
	case "linux", "mixed", "unicode":
		repos, err = debian(ctx, name, cache)
	default:
		return Corpus{}, fmt.Errorf("corpus %q: expected one of %s, all, or the path of a folder", name, strings.Join(Names(), ", "))
	}
	if err != nil {
		return Corpus{}, fmt.Errorf("finding corpus %s: %w", name, err)
	}
	return Corpus{Name: name, Repos: repos}, nil
}

// goEnv asks the toolchain for a setting.
func goEnv(ctx context.Context, key string) (string, error) {
	out, err := exec.CommandContext(ctx, "go", "env", key).Output()
	if err != nil {
		return "", fmt.Errorf("go env %s: %w", key, err)
	}
	return strings.TrimSpace(string(out)), nil
}

func goTree(ctx context.Context) ([]Repo, error) {
	root, err := goEnv(ctx, "GOROOT")
	if err != nil {
		return nil, err
	}
	return []Repo{{"go", filepath.Join(root, "src")}}, nil
}

func kubernetes(ctx context.Context) ([]Repo, error) {
	cmd := exec.CommandContext(ctx, "go", "mod", "download", "-json", KubernetesModule)
	cmd.Dir = os.TempDir() // outside of any module, so that it changes no go.mod
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go mod download %s: %w: %s", KubernetesModule, err, out)
	}
	var module struct{ Dir string }
	if err := json.Unmarshal(out, &module); err != nil {
		return nil, fmt.Errorf("reading what go mod download printed: %w", err)
	}
	return []Repo{{"kubernetes", module.Dir}}, nil
}

// modules makes a repo of each version of each module in the module cache.
func modules(ctx context.Context, limit int) ([]Repo, error) {
	root, err := goEnv(ctx, "GOMODCACHE")
	if err != nil {
		return nil, err
	}
	return modulesIn(root, limit)
}

func modulesIn(root string, limit int) ([]Repo, error) {
	var repos []Repo
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		if path == filepath.Join(root, "cache") {
			return fs.SkipDir
		}
		if !strings.Contains(d.Name(), "@") {
			return nil
		}
		if name := filepath.ToSlash(strings.TrimPrefix(path, root+string(filepath.Separator))); !strings.HasPrefix(name, "k8s.io/kubernetes@") {
			repos = append(repos, Repo{name, path}) // Kubernetes is a corpus of its own
		}
		return fs.SkipDir
	})
	if err != nil {
		return nil, fmt.Errorf("walking the module cache: %w", err)
	}
	slices.SortFunc(repos, func(a, b Repo) int { return cmp.Compare(a.Name, b.Name) })
	if limit > 0 && len(repos) > limit {
		repos = repos[:limit]
	}
	return repos, nil
}

func run(ctx context.Context, dir, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, out)
	}
	return nil
}
