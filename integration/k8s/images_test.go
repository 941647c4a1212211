package k8s

import (
	"cmp"
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

// The tags of Trawl's images: the same code under two versions, and that of the commit before.
const previous, current, before = "previous", "current", "before"

// upgradeFromEnv names the commit from which the upgrade in the wrong order starts; empty: the parent of
// the one that is checked out. Its source is put into the folder beforeSource of the repository.
const (
	upgradeFromEnv = "TRAWL_TEST_UPGRADE_FROM"
	beforeSource   = ".cache/k8s/before"
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
	earlierDebian, err := kube.Unpacked(ctx, earlier, "debian")
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
	commit := cmp.Or(os.Getenv(upgradeFromEnv), "HEAD^")
	dir = filepath.Join(root, beforeSource)
	if err := os.RemoveAll(dir); err != nil {
		return "", err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	archive := filepath.Join(dir, "source.tar")
	for _, args := range [][]string{
		{"git", "-C", root, "archive", "--output", archive, commit}, {"tar", "-xf", archive, "-C", dir}, {"rm", archive},
	} {
		if out, err := exec.CommandContext(ctx, args[0], args[1:]...).CombinedOutput(); err != nil {
			return "", fmt.Errorf("check out %s: %w\n%s", commit, err, out)
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
