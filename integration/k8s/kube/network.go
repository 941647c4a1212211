package kube

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// network holds the addresses of a cluster, all in one /16 block.
type network struct{ all, services, apiserver, dns string }

// The blocks to try are 10.firstBlock.0.0/16 to 10.lastBlock.0.0/16. Other networks of the
// engine may occupy some.
const firstBlock, lastBlock = 201, 209

// makeNetwork makes the network of the nodes and assigns addresses: 10.BLOCK.0.0/24 to nodes,
// 10.BLOCK.1.0/24 and following to the pods of each node, and 10.BLOCK.128.0/17 to services.
func (c *Cluster) makeNetwork(ctx context.Context) error {
	var errs []error
	for block := firstBlock; block <= lastBlock; block++ {
		_, err := docker(ctx, "network", "create", "--subnet", fmt.Sprintf("10.%d.0.0/24", block), "--label", Label+"="+c.name, c.name)
		if err == nil {
			c.plan(block)
			return c.link()
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

func (c *Cluster) plan(block int) {
	of := func(rest string) string { return fmt.Sprintf("10.%d.%s", block, rest) }
	c.net = network{all: of("0.0/16"), services: of("128.0/17"), apiserver: of("128.1"), dns: of("128.10")}
	for i := range nodes {
		name := fmt.Sprintf("node%d", i)
		c.Nodes = append(c.Nodes, &Node{
			Name: name, Container: c.name + "-" + name, IP: of(fmt.Sprintf("0.%d", 10+i)), pods: of(fmt.Sprintf("%d.0/24", i+1)), control: i == 0,
		})
	}
}

// link gives the programs their usual names in Bin.
func (c *Cluster) link() error {
	if err := os.MkdirAll(c.Bin(), 0o755); err != nil {
		return err
	}
	return errors.Join(
		os.Symlink(c.programs.Kubernetes, filepath.Join(c.Bin(), "kubectl")),
		os.Symlink(c.programs.Helm, filepath.Join(c.Bin(), "helm")))
}
