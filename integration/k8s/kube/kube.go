// Package kube runs a Kubernetes of three nodes, each a container of the local
// Docker engine. It builds the programs from Go modules and unpacks a Debian
// from packages, so it needs no image registry and no other tool. The first node
// runs the control plane too. The package also connects to an existing cluster,
// such as one made by kind.
package kube

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
)

// nodes is the number of nodes.
const nodes = 3

// Cluster is a Kubernetes.
type Cluster struct {
	// Kubeconfig is the file with which an administrator on this machine reaches the cluster.
	Kubeconfig string
	Nodes      []*Node

	name     string
	existing bool   // the cluster existed before
	dir      string // holds certificates and the nodes' files
	net      network
	programs Programs
}

// Start starts a cluster and waits until it takes pods. Its files are in dir, which must
// exist. Sweep removes the cluster, even the incomplete one that an error leaves.
func Start(ctx context.Context, p Programs, dir string, progress io.Writer) (*Cluster, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	c := &Cluster{name: fmt.Sprintf("trawl-k8s-%d", time.Now().UnixNano()), dir: dir, programs: p, Kubeconfig: filepath.Join(dir, "host.conf")}
	for _, step := range []struct {
		what string
		do   func(context.Context) error
	}{
		{"network", c.makeNetwork},
		{"certificates", c.makeCertificates},
		{"node containers", c.startNodes},
		{"containerd, and the images of pause and CoreDNS", c.baseImages},
		{"API server", func(ctx context.Context) error { return c.until(ctx, "get", "--raw=/readyz") }},
		{"nodes ready", c.WaitNodes},
		{"CoreDNS and volumes", c.install},
	} {
		start := time.Now()
		if err := step.do(ctx); err != nil {
			return c, fmt.Errorf("start a cluster: %s: %w", step.what, err)
		}
		fmt.Fprintf(progress, "%s: %.1f s\n", step.what, time.Since(start).Seconds())
	}
	return c, nil
}

func (c *Cluster) makeCertificates(context.Context) error {
	if err := os.WriteFile(filepath.Join(c.dir, "node.sh"), []byte(nodeScript), 0o600); err != nil {
		return err
	}
	ca, err := newAuthority(c.dir)
	if err != nil {
		return err
	}
	control := c.Nodes[0].IP
	errs := []error{
		ca.issue("apiserver", "kube-apiserver", "", control, "127.0.0.1", c.net.apiserver, "kubernetes", "kubernetes.default",
			"kubernetes.default.svc", "kubernetes.default.svc.cluster.local"),
		ca.issue("accounts", "accounts", ""),
		ca.issue("admin", "admin", "system:masters"),
		ca.issue("controllers", "system:kube-controller-manager", ""),
		ca.issue("scheduler", "system:kube-scheduler", ""),
		ca.issue("kube-proxy", "system:kube-proxy", "system:node-proxier"),
	}
	users := []string{"controllers", "scheduler", "kube-proxy"}
	for _, n := range c.Nodes {
		errs = append(errs, ca.issue(n.Name, "system:node:"+n.Name, "system:nodes", n.Name, n.IP))
		users = append(users, n.Name)
	}
	for _, user := range users {
		errs = append(errs, ca.kubeconfig(user, "https://"+control+":6443", "/pki"))
	}
	errs = append(errs, ca.kubeconfig("admin", "https://"+control+":6443", c.dir))
	return errors.Join(append(errs, os.Rename(filepath.Join(c.dir, "admin.conf"), c.Kubeconfig))...)
}

// startNodes starts all nodes and waits for containerd on them.
func (c *Cluster) startNodes(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, n := range c.Nodes {
		group.Go(func() error {
			if err := c.start(ctx, n); err != nil {
				return err
			}
			return retry(ctx, func(ctx context.Context) error {
				_, err := n.Run(ctx, nil, "ctr", "version")
				return err
			})
		})
	}
	return group.Wait()
}

// WaitNodes waits until all nodes are ready.
func (c *Cluster) WaitNodes(ctx context.Context) error {
	return retry(ctx, func(ctx context.Context) error {
		out, err := c.Kubectl(ctx, "get", "nodes", `--output=jsonpath={range .items[*]}{.status.conditions[?(@.type=="Ready")].status} {end}`)
		if err != nil {
			return err
		}
		if ready := strings.Count(out, "True"); ready != len(c.Nodes) {
			return fmt.Errorf("%d of %d nodes are ready", ready, len(c.Nodes))
		}
		return nil
	})
}

// Kubectl runs kubectl and returns what it printed.
func (c *Cluster) Kubectl(ctx context.Context, args ...string) (string, error) {
	return run(ctx, nil, c.kubectl(), append([]string{"--kubeconfig", c.Kubeconfig}, args...)...)
}

// kubectl is the path under which the Kubernetes program acts as kubectl.
func (c *Cluster) kubectl() string { return filepath.Join(c.Bin(), "kubectl") }

// Bin is a folder with kubectl and helm.
func (c *Cluster) Bin() string { return filepath.Join(c.dir, "bin") }

func (c *Cluster) until(ctx context.Context, args ...string) error {
	return retry(ctx, func(ctx context.Context) error {
		_, err := c.Kubectl(ctx, args...)
		return err
	})
}

// patience bounds every wait for something that must happen.
const patience = 3 * time.Minute

// retry calls f until it returns nil.
func retry(ctx context.Context, f func(ctx context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		err := f(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("not after %v: %w", patience, err)
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// Helm runs helm and returns what it printed.
func (c *Cluster) Helm(ctx context.Context, args ...string) (string, error) {
	return run(ctx, nil, filepath.Join(c.Bin(), "helm"), append([]string{"--kubeconfig", c.Kubeconfig}, args...)...)
}

// Existing reports whether the cluster existed before, so that its nodes must not be
// stopped.
func (c *Cluster) Existing() bool { return c.existing }

// Network returns the networks of all nodes, pods and services, as ADDRESS/BITS, separated by
// commas.
func (c *Cluster) Network() string { return c.net.all }
