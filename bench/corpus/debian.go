package corpus

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// piece is one Debian package of source code or text, and the part of it that a corpus uses.
type piece struct {
	pkg string
	// pattern matches a .tar.xz, a .zip or a folder that the package installs.
	pattern string
	// folder of the corpus that it becomes; if empty, it is the whole corpus.
	folder string
}

// trees are the corpora from Debian, one repo each.
var trees = map[string][]piece{
	"linux": {{"linux-source-6.1", "usr/src/linux-source-6.1.tar.xz", ""}},
	// Three languages in one repo, much of it tests of a few lines.
	"mixed": {
		{"gcc-12-source", "usr/src/gcc-12/gcc-12*.tar.xz", "gcc-12"},
		{"openjdk-17-source", "usr/lib/jvm/openjdk-17/lib/src.zip", "openjdk-17"},
		{"rust-src", "usr/src/rustc-1.63*", "rust-1.63"},
	},
	// Help pages in three scripts, and names of things in some hundred languages: a sixth of the
	// bytes is not ASCII.
	"unicode": {
		{"libreoffice-help-zh-cn", "usr/share/libreoffice/help/zh-CN", "help/zh-CN"},
		{"libreoffice-help-ja", "usr/share/libreoffice/help/ja", "help/ja"},
		{"libreoffice-help-ru", "usr/share/libreoffice/help/ru", "help/ru"},
		{"unicode-cldr-core", "usr/share/unicode/cldr/common/main", "cldr/main"},
		{"unicode-cldr-core", "usr/share/unicode/cldr/common/annotations", "cldr/annotations"},
	},
}

// debian unpacks the pieces of a corpus below the folder cache, once.
func debian(ctx context.Context, name, cache string) ([]Repo, error) {
	dir := filepath.Join(cache, name)
	repo := []Repo{{name, dir}}
	if _, err := os.Stat(dir); err == nil {
		return repo, nil
	}
	if err := os.MkdirAll(cache, 0o777); err != nil {
		return nil, fmt.Errorf("making the cache: %w", err)
	}
	// A tree gets its own name only when it is complete.
	unfinished, err := os.MkdirTemp(cache, name+"-unfinished-")
	if err != nil {
		return nil, fmt.Errorf("making the folder of the tree: %w", err)
	}
	for _, p := range trees[name] {
		if err := p.unpack(ctx, cache, filepath.Join(unfinished, p.folder)); err != nil {
			return nil, errors.Join(fmt.Errorf("unpacking %s: %w", p.pkg, err), os.RemoveAll(unfinished))
		}
	}
	if err := os.Chmod(unfinished, 0o755); err != nil {
		return nil, fmt.Errorf("opening the folder of the tree: %w", err)
	}
	if err := os.Rename(unfinished, dir); err != nil {
		return nil, fmt.Errorf("giving the tree its name: %w", err)
	}
	return repo, nil
}

// unpack creates the folder to from the package. It downloads the package if it is not installed.
func (p piece) unpack(ctx context.Context, cache, to string) error {
	from, err := p.find("/")
	if errors.Is(err, os.ErrNotExist) {
		from, err = p.download(ctx, cache)
	}
	if err != nil {
		return err
	}
	if err := os.MkdirAll(to, 0o777); err != nil {
		return fmt.Errorf("making a folder: %w", err)
	}
	switch filepath.Ext(from) {
	case ".xz":
		return run(ctx, to, "tar", "-xJf", from, "--strip-components=1")
	case ".zip":
		return unzip(from, to)
	}
	return run(ctx, to, "cp", "-R", from+"/.", ".")
}

// find looks below root for what the package installs.
func (p piece) find(root string) (string, error) {
	found, err := filepath.Glob(filepath.Join(root, p.pattern))
	if err != nil {
		return "", fmt.Errorf("looking for %s: %w", p.pattern, err)
	}
	if len(found) == 0 {
		return "", fmt.Errorf("%s below %s: %w", p.pattern, root, os.ErrNotExist)
	}
	return found[len(found)-1], nil
}

// download downloads the package without installing it, and finds the piece in it.
func (p piece) download(ctx context.Context, cache string) (string, error) {
	dir := filepath.Join(cache, "package")
	root := filepath.Join(dir, p.pkg)
	if from, err := p.find(root); err == nil {
		return from, nil // another piece belongs to the same package
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return "", fmt.Errorf("making the cache: %w", err)
	}
	if err := run(ctx, dir, "apt-get", "download", p.pkg); err != nil {
		return "", err
	}
	debs, err := filepath.Glob(filepath.Join(dir, p.pkg+"_*.deb"))
	if err != nil || len(debs) == 0 {
		return "", fmt.Errorf("apt-get download left no %s in %s", p.pkg, dir)
	}
	if err := run(ctx, dir, "dpkg-deb", "-x", debs[len(debs)-1], root); err != nil {
		return "", err
	}
	return p.find(root)
}
