package kube

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"time"
)

// Label marks everything that clusters create in the engine; its value is the cluster's name.
const Label = "org.trawl-search.test.k8s"

// run runs a command and returns its standard output. An error includes both outputs.
func run(ctx context.Context, stdin io.Reader, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Stdin = stdin
	cmd.WaitDelay = time.Second
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	if err := cmd.Run(); err != nil {
		return out.String(), fmt.Errorf("%s %s: %w: %s%s", name, strings.Join(args, " "), err, out.String(), said.String())
	}
	return out.String(), nil
}

func docker(ctx context.Context, args ...string) (string, error) {
	return run(ctx, nil, "docker", args...)
}

// sweepTime bounds a cleanup.
const sweepTime = 2 * time.Minute

// Sweep removes all containers, with their volumes, and networks of all clusters, and
// returns their names. It repeats until nothing is left, because an interrupted run may
// still be creating some.
func Sweep(ctx context.Context) (removed []string, err error) {
	ctx, cancel := context.WithTimeout(ctx, sweepTime)
	defer cancel()
	for {
		found, err := sweepOnce(ctx)
		if len(found) == 0 && err == nil {
			return removed, nil
		}
		removed = append(removed, found...)
		select {
		case <-ctx.Done():
			return removed, fmt.Errorf("remove what clusters left: %w", errors.Join(ctx.Err(), err))
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// sweepOnce tries to remove everything with the label. The error says why something remains.
func sweepOnce(ctx context.Context) (found []string, err error) {
	containers, err := list(ctx, "ps", "--all", "--format", "{{.Names}}")
	errs := []error{err}
	if len(containers) > 0 {
		// Not every engine can remove a paused container.
		_, _ = docker(ctx, append([]string{"unpause"}, containers...)...)
		_, err = docker(ctx, append([]string{"rm", "--force", "--volumes"}, containers...)...)
		errs = append(errs, err)
	}
	networks, err := list(ctx, "network", "ls", "--format", "{{.Name}}")
	errs = append(errs, err)
	if len(networks) > 0 {
		_, err = docker(ctx, append([]string{"network", "rm"}, networks...)...)
		errs = append(errs, err)
	}
	return append(containers, networks...), errors.Join(errs...)
}

// list runs a docker command that lists objects, limited to those of clusters.
func list(ctx context.Context, args ...string) ([]string, error) {
	out, err := docker(ctx, append(args, "--filter", "label="+Label)...)
	return strings.Fields(out), err
}
