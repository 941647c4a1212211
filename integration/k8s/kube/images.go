package kube

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/sync/errgroup"
)

// pauseImage is the image of a pod's first container, which keeps its namespaces.
const pauseImage = "trawl-test/pause:1"

// Load copies images from the engine to every node.
func (c *Cluster) Load(ctx context.Context, images ...string) (err error) {
	archive := filepath.Join(c.dir, "images.tar")
	defer func() { err = errors.Join(err, os.Remove(archive)) }()
	if _, err := docker(ctx, append([]string{"save", "--output", archive}, images...)...); err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	for _, n := range c.Nodes {
		group.Go(func() error {
			if c.existing {
				return n.load(ctx, archive)
			}
			_, err := n.Run(ctx, nil, "ctr", "--namespace=k8s.io", "images", "import", "/pki/images.tar")
			return err
		})
	}
	return group.Wait()
}

// load streams the images of an archive into a node that does not mount the archive's folder.
func (n *Node) load(ctx context.Context, archive string) error {
	f, err := os.Open(archive)
	if err != nil {
		return fmt.Errorf("load images: %w", err)
	}
	defer f.Close()
	_, err = n.Run(ctx, f, "ctr", "--namespace=k8s.io", "images", "import", "-")
	return err
}

// Program makes an image of one static binary on top of the image base; "scratch" is an
// empty one.
func (c *Cluster) Program(ctx context.Context, tag, base, binary string) (err error) {
	dir := filepath.Join(c.dir, "build")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if err := exec.CommandContext(ctx, "cp", binary, filepath.Join(dir, "program")).Run(); err != nil {
		return fmt.Errorf("copy %s: %w", binary, err)
	}
	recipe := strings.NewReader("FROM " + base + "\nCOPY program /program\nENTRYPOINT [\"/program\"]\n")
	_, err = run(ctx, recipe, "docker", "build", "--quiet", "--tag", tag, "--file", "-", dir)
	return err
}

// baseImages makes the images that every cluster needs, and loads them.
func (c *Cluster) baseImages(ctx context.Context) error {
	pause, err := c.Compile(ctx, "pause")
	if err != nil {
		return err
	}
	if err := c.Program(ctx, pauseImage, "scratch", pause); err != nil {
		return err
	}
	if err := c.Program(ctx, corednsImage, "scratch", c.programs.CoreDNS); err != nil {
		return err
	}
	return c.Load(ctx, pauseImage, corednsImage)
}

// Compile builds the program in a sibling folder of this package.
func (c *Cluster) Compile(ctx context.Context, name string) (binary string, err error) {
	binary = filepath.Join(c.dir, name)
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o", binary,
		"github.com/trawl-search/trawl/integration/k8s/"+name)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build %s: %w\n%s", name, err, out)
	}
	return binary, nil
}
