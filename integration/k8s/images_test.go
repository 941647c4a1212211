package k8s

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/trawl-search/trawl/integration/k8s/kube"
	"github.com/trawl-search/trawl/internal/pinned"
)

// images is the prefix of the names of all images of the tests.
const images = "trawl-test/k8s/"

// source is a label that only Trawl's own images have.
const source = "org.opencontainers.image.source=https://github.com/trawl-search/trawl"

// The tags of Trawl's images: the same code under two versions, and that of an earlier commit.
const previous, current, before = "previous", "current", "before"

// beforeCommit is the last commit before TLS, roles that authenticate each other, and searchers that report the
// formats they read. Its source is checked out into the folder beforeSource of the repository.
const (
	beforeCommit = "e878012650c40b5b253251740b0e6b305c05b48a"
	beforeSource = ".cache/k8s/before"
)

// makeImages makes all images and copies them to the nodes.
func makeImages(ctx context.Context, c *kube.Cluster, p kube.Programs) error {
	gitserver, err := c.Compile(ctx, "gitserver")
	if err != nil {
		return err
	}
	var all []string
	for _, image := range []struct{ name, base, binary string }{
		{"etcd", "scratch", p.Etcd}, {"nats", "scratch", p.NATS}, {"versitygw", "scratch", p.Versitygw}, {"gitserver", p.Debian, gitserver},
	} {
		tag := images + image.name + ":1"
		if err := c.Program(ctx, tag, image.base, image.binary); err != nil {
			return err
		}
		all = append(all, tag)
	}
	root, err := pinned.Repository(ctx)
	if err != nil {
		return err
	}
	earlier, err := checkOut(ctx, root)
	if err != nil {
		return err
	}
	earlierDebian, err := kube.Unpacked(ctx, earlier, "debian") // it has programs that this tree's indexer does without
	if err != nil {
		return err
	}
	for _, made := range []struct{ tag, source, base string }{
		{previous, root, p.Debian}, {current, root, p.Debian}, {before, earlier, earlierDebian},
	} {
		tag := made.tag
		if err := makeRoles(ctx, made.source, tag, made.base); err != nil {
			return err
		}
		for _, role := range []string{"router", "searcher", "indexer"} {
			all = append(all, images+"trawl-"+role+":"+tag)
		}
	}
	// The images of an earlier tree have lost their names to the new ones.
	if err := exec.CommandContext(ctx, "docker", "image", "prune", "--force", "--filter", "label="+source).Run(); err != nil {
		return fmt.Errorf("remove old images: %w", err)
	}
	return c.Load(ctx, all...)
}

// checkOut puts the source of the earlier commit into a folder. The clone must have the commit.
func checkOut(ctx context.Context, root string) (dir string, err error) {
	dir = filepath.Join(root, beforeSource)
	if err := os.RemoveAll(dir); err != nil {
		return "", err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	archive := filepath.Join(dir, "source.tar")
	for _, args := range [][]string{
		{"git", "-C", root, "archive", "--output", archive, beforeCommit}, {"tar", "-xf", archive, "-C", dir}, {"rm", archive},
	} {
		if out, err := exec.CommandContext(ctx, args[0], args[1:]...).CombinedOutput(); err != nil {
			return "", fmt.Errorf("check out %s: %w\n%s", beforeCommit, err, out)
		}
	}
	return dir, nil
}

// makeRoles makes Trawl's own images as the Makefile of their source does.
func makeRoles(ctx context.Context, source, tag, base string) error {
	cmd := exec.CommandContext(ctx, "make", "images", "PREFIX="+images+"trawl", "TAG="+tag, "VERSION=e2e-"+tag, "BASE="+base,
		"BIN="+filepath.Join(".cache", "k8s", "trawl-"+tag))
	cmd.Dir = source
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("make images: %w\n%s", err, out)
	}
	return nil
}
