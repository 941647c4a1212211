package cluster

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/moby/moby/client"

	"github.com/trawl-search/trawl/internal/pinned"
)

// imagePrefix is the first part of the names of all images made here.
const imagePrefix = "trawl-test/"

// imageSet names the images that a cluster runs on.
type imageSet struct{ NATS, Etcd, S3, Indexer, Searcher, Router string }

// buildImages makes the missing images, without an image registry: servers from their Go
// modules, and Trawl's roles from this tree. Each image is a static binary and nothing else;
// only the indexer's has a Debian below it. An image's tag is the hash of its inputs. The build
// takes minutes the first time and seconds if nothing has changed. It reports slow steps on
// progress.
func buildImages(ctx context.Context, docker *client.Client, progress io.Writer) (imageSet, error) {
	root, err := pinned.Repository(ctx)
	if err != nil {
		return imageSet{}, err
	}
	b := &builder{docker: docker, root: root, progress: progress}
	var set imageSet
	for _, image := range []struct {
		name *string
		make func(ctx context.Context) (string, error)
	}{
		{&set.NATS, b.server("nats", pinned.NATS)},
		{&set.Etcd, b.server("etcd", pinned.Etcd)},
		{&set.S3, b.server("versitygw", pinned.Versitygw)},
		{&set.Router, b.role("router", "serving")},
		{&set.Searcher, b.role("searcher", "serving")},
		{&set.Indexer, b.role("indexer", "indexing")},
	} {
		if *image.name, err = image.make(ctx); err != nil {
			return imageSet{}, err
		}
	}
	return set, b.removeOld(ctx, set)
}

// builder makes images. Its field trawl is the path of the binary once that is built.
type builder struct {
	docker   *client.Client
	root     string
	progress io.Writer
	trawl    string
}

// say reports the start of a step, and returns a function that reports how long it took.
func (b *builder) say(format string, args ...any) (done func()) {
	what := fmt.Sprintf(format, args...)
	fmt.Fprintf(b.progress, "%s …\n", what)
	start := time.Now()
	return func() { fmt.Fprintf(b.progress, "%s: %.1f s\n", what, time.Since(start).Seconds()) }
}

// server makes the image of a pinned server.
func (b *builder) server(name string, program pinned.Program) func(context.Context) (string, error) {
	return func(ctx context.Context) (string, error) {
		done := b.say("the binary of %s", name)
		binary, err := pinned.Build(ctx, program)
		if err != nil {
			return "", err
		}
		done()
		return b.image(ctx, name, recipe{
			dockerfile: []byte("FROM scratch\nCOPY server /server\nENTRYPOINT [\"/server\"]\n"),
			files:      map[string]string{"server": binary},
		})
	}
}

// role makes the image of one of Trawl's roles, a target of their common Dockerfile.
func (b *builder) role(name, target string) func(context.Context) (string, error) {
	return func(ctx context.Context) (string, error) {
		if err := b.buildTrawl(ctx); err != nil {
			return "", err
		}
		base, err := b.debian(ctx)
		if err != nil {
			return "", err
		}
		dockerfile, err := os.ReadFile(filepath.Join(b.root, "tools", "images", "Dockerfile"))
		if err != nil {
			return "", fmt.Errorf("read the recipe of the %s: %w", name, err)
		}
		return b.image(ctx, name, recipe{dockerfile: dockerfile, base: base, target: target, files: map[string]string{"bin/trawl": b.trawl}})
	}
}

// buildTrawl finds the binary under test.
func (b *builder) buildTrawl(ctx context.Context) error {
	if b.trawl != "" {
		return nil
	}
	defer b.say("the binary of trawl")()
	path, err := pinned.Trawl(ctx)
	if err != nil {
		return err
	}
	b.trawl = path
	return nil
}

// debian makes the Debian below the indexer's image.
func (b *builder) debian(ctx context.Context) (string, error) {
	script := filepath.Join(b.root, "tools", "images", "debian.sh")
	hash, err := recipe{files: map[string]string{"debian.sh": script}}.hash()
	if err != nil {
		return "", err
	}
	base := imagePrefix + "debian:" + hash
	exists, err := b.exists(ctx, base)
	if err != nil {
		return "", err
	}
	if !exists {
		done := b.say("the image %s", base)
		if out, err := exec.CommandContext(ctx, script, base).CombinedOutput(); err != nil {
			return "", fmt.Errorf("make the images' Debian (%s): %w\n%s", script, err, out)
		}
		done()
	}
	return base, nil
}
