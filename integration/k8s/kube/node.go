package kube

import (
	"context"
	_ "embed"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

//go:embed node.sh
var nodeScript string

// Node is one machine of a cluster: a container.
type Node struct {
	// Name is the node's name, Container that of its container, and IP its address.
	Name, Container, IP string
	pods                string // addresses of its pods
	control             bool
}

// start starts the node's container.
func (c *Cluster) start(ctx context.Context, n *Node) error {
	var routes []string
	for _, other := range c.Nodes {
		if other != n {
			routes = append(routes, other.pods+" "+other.IP)
		}
	}
	control := "no"
	if n.control {
		control = "yes"
	}
	args := []string{
		"run", "--detach", "--name", n.Container, "--hostname", n.Name, "--network", c.name, "--ip", n.IP, "--label", Label + "=" + c.name,
		// Everything except capabilities that this machine itself may lack.
		"--cap-add=ALL", "--cap-drop=SYS_RESOURCE", "--security-opt=seccomp=unconfined", "--security-opt=systempaths=unconfined",
		"--security-opt=apparmor=unconfined", "--device-cgroup-rule=a *:* rwm", "--device=/dev/kmsg",
		"--volume=/sys/fs/cgroup:/sys/fs/cgroup:rw", "--tmpfs=/run:exec", "--tmpfs=/tmp",
		"--volume=/var/lib/containerd", "--volume=/var/lib/kubelet", "--volume=/var/lib/etcd", "--volume=/volumes",
		"--volume=" + c.dir + ":/pki:ro",
		"--volume=" + c.programs.Kubernetes + ":/opt/trawl/kubernetes:ro", "--volume=" + c.programs.Etcd + ":/opt/trawl/etcd:ro",
	}
	for _, env := range []string{
		"NODE=" + n.Name, "IP=" + n.IP, "PODS=" + n.pods, "CLUSTER=" + c.net.all, "SERVICES=" + c.net.services, "DNS=" + c.net.dns,
		"ROUTES=" + strings.Join(routes, ","), "CONTROL=" + control, "PAUSE=" + pauseImage,
	} {
		args = append(args, "--env="+env)
	}
	_, err := docker(ctx, append(args, c.programs.NodeImage, "/bin/bash", "/pki/node.sh")...)
	return err
}

// Pause freezes all processes of the node, as if the machine hung.
func (n *Node) Pause(ctx context.Context) error { return n.do(ctx, "pause") }

// Unpause resumes the processes of the node.
func (n *Node) Unpause(ctx context.Context) error { return n.do(ctx, "unpause") }

// Kill ends all processes of the node at once, as if the machine lost its power.
func (n *Node) Kill(ctx context.Context) error { return n.do(ctx, "kill") }

// Start starts a node that was killed.
func (n *Node) Start(ctx context.Context) error { return n.do(ctx, "start") }

func (n *Node) do(ctx context.Context, what string) error {
	_, err := docker(ctx, what, n.Container)
	return err
}

// Run runs a command on the node.
func (n *Node) Run(ctx context.Context, stdin io.Reader, command ...string) (string, error) {
	return run(ctx, stdin, "docker", append([]string{"exec", "--interactive", n.Container}, command...)...)
}

// writeLogs copies the logs of the node's programs to a folder.
func (n *Node) writeLogs(ctx context.Context, dir string) error {
	if err := os.MkdirAll(filepath.Join(dir, n.Name), 0o755); err != nil {
		return fmt.Errorf("keep the logs of %s: %w", n.Name, err)
	}
	_, err := docker(ctx, "cp", n.Container+":/var/log/node/.", filepath.Join(dir, n.Name))
	return err
}
