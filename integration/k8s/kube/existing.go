package kube

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
)

// privateNetworks are the ranges from which clusters take the addresses of pods and services.
const privateNetworks = "10.0.0.0/8, 172.16.0.0/12, 192.168.0.0/16"

// Use connects to an existing cluster, such as one made by kind. Its nodes must be containers
// of the local Docker engine, because images are loaded through docker exec. Files go to dir,
// which must exist. Sweep leaves the cluster alone.
func Use(ctx context.Context, p Programs, kubeconfig, dir string) (*Cluster, error) {
	kubeconfig, err := filepath.Abs(kubeconfig)
	if err != nil {
		return nil, err
	}
	c := &Cluster{dir: dir, programs: p, existing: true, Kubeconfig: kubeconfig, net: network{all: privateNetworks}}
	if err := c.link(); err != nil {
		return nil, err
	}
	list, err := c.Kubectl(ctx, "get", "nodes", "--output=json")
	if err != nil {
		return nil, fmt.Errorf("use the cluster of %s: %w", kubeconfig, err)
	}
	if c.Nodes, err = readNodes([]byte(list)); err != nil {
		return nil, fmt.Errorf("use the cluster of %s: %w", kubeconfig, err)
	}
	for _, n := range c.Nodes {
		if _, err := docker(ctx, "container", "inspect", n.Container); err != nil {
			return nil, fmt.Errorf("use the cluster of %s: node %s is no container of the local Docker engine, want a cluster such as kind's: %w", kubeconfig, n.Name, err)
		}
	}
	return c, c.WaitNodes(ctx)
}

var errNoNode = errors.New("no node of the cluster takes every pod: want one without taints")

// readNodes parses kubectl's list of nodes. Nodes that take every pod come first.
func readNodes(list []byte) ([]*Node, error) {
	var all struct {
		Items []struct {
			Metadata struct{ Name string }
			Spec     struct {
				Taints        []struct{ Effect string }
				Unschedulable bool
			}
			Status struct {
				Addresses []struct{ Type, Address string }
			}
		}
	}
	if err := json.Unmarshal(list, &all); err != nil {
		return nil, fmt.Errorf("read the nodes: %w", err)
	}
	var open, tainted []*Node
	for _, item := range all.Items {
		n := &Node{Name: item.Metadata.Name, Container: item.Metadata.Name}
		for _, a := range item.Status.Addresses {
			if a.Type == "InternalIP" && n.IP == "" {
				n.IP = a.Address
			}
		}
		if len(item.Spec.Taints) > 0 || item.Spec.Unschedulable {
			tainted = append(tainted, n)
		} else {
			open = append(open, n)
		}
	}
	if len(open) == 0 {
		return nil, errNoNode
	}
	return slices.Concat(open, tainted), nil
}
