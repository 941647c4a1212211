package k8s

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"

	"github.com/trawl-search/trawl/integration/k8s/kube"
	"github.com/trawl-search/trawl/internal/pinned"
)

// images is the first part of the names of all images of the tests.
const images = "trawl-test/k8s/"

// source is a label of Trawl's own images.
const source = "org.opencontainers.image.source=https://github.com/trawl-search/trawl"

// The tags of Trawl's images: the same code under two versions.
const previous, current = "previous", "current"

// makeImages makes all images and gives them to the nodes.
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
	for _, tag := range []string{previous, current} {
		if err := makeRoles(ctx, tag, p.Debian); err != nil {
			return err
		}
		for _, role := range []string{"router", "searcher", "indexer"} {
			all = append(all, images+"trawl-"+role+":"+tag)
		}
	}
	// Those of an earlier tree have no name any more.
	if err := exec.CommandContext(ctx, "docker", "image", "prune", "--force", "--filter", "label="+source).Run(); err != nil {
		return fmt.Errorf("remove old images: %w", err)
	}
	return c.Load(ctx, all...)
}

// makeRoles makes Trawl's own images as its Makefile does.
func makeRoles(ctx context.Context, tag, base string) error {
	root, err := pinned.Repository(ctx)
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, "make", "images", "PREFIX="+images+"trawl", "TAG="+tag, "VERSION=e2e-"+tag, "BASE="+base,
		"BIN="+filepath.Join(".cache", "k8s", "trawl-"+tag))
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("make images: %w\n%s", err, out)
	}
	return nil
}
