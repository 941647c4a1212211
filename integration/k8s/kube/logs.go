package kube

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// WriteLogs writes the logs of all pods to a folder, with the events, the description of
// every object and, unless the cluster existed before, the logs of the nodes.
func (c *Cluster) WriteLogs(ctx context.Context, dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("keep the logs: %w", err)
	}
	var errs []error
	keep := func(file string, args ...string) {
		out, err := c.Kubectl(ctx, args...)
		if err != nil {
			out += err.Error()
		}
		errs = append(errs, os.WriteFile(filepath.Join(dir, file), []byte(out), 0o600))
	}
	keep("events.txt", "get", "events", "--all-namespaces", "--sort-by=.metadata.creationTimestamp")
	keep("all.txt", "get", "all,nodes,pvc,pv", "--all-namespaces", "--output=wide")
	keep("pods.txt", "describe", "pods", "--all-namespaces")
	pods, err := c.Kubectl(ctx, "get", "pods", "--all-namespaces", "--output=jsonpath={range .items[*]}{.metadata.namespace}/{.metadata.name} {end}")
	errs = append(errs, err)
	for pod := range strings.FieldsSeq(pods) {
		namespace, name, _ := strings.Cut(pod, "/")
		keep(namespace+"-"+name+".log", "logs", "--namespace="+namespace, name, "--all-containers")
		keep(namespace+"-"+name+".previous.log", "logs", "--namespace="+namespace, name, "--all-containers", "--previous")
	}
	if c.existing {
		return errors.Join(errs...)
	}
	for _, n := range c.Nodes {
		errs = append(errs, n.writeLogs(ctx, dir))
	}
	return errors.Join(errs...)
}
