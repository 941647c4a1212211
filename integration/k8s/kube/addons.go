package kube

import (
	"context"
	_ "embed"
	"fmt"
	"strings"
)

//go:embed addons.yaml
var addons string

const corednsImage = "trawl-test/coredns:1"

// install adds what Kubernetes itself lacks: DNS and volumes.
func (c *Cluster) install(ctx context.Context) error {
	text := strings.NewReplacer("IMAGE", corednsImage, "DNS", c.net.dns).Replace(addons)
	if err := c.Apply(ctx, text); err != nil {
		return err
	}
	if err := c.makeVolumes(ctx); err != nil {
		return err
	}
	_, err := c.Kubectl(ctx, "--namespace=kube-system", "rollout", "status", "deployment/coredns", "--timeout=2m")
	return err
}

// Apply applies a manifest.
func (c *Cluster) Apply(ctx context.Context, manifest string) error {
	_, err := run(ctx, strings.NewReader(manifest), c.kubectl(), "--kubeconfig", c.Kubeconfig, "apply", "--server-side", "--filename=-")
	return err
}

// volumesPerNode is enough for a release of the chart and for another one after it.
const volumesPerNode = 12

// makeVolumes makes empty volumes on each node. A used volume is never claimed again.
func (c *Cluster) makeVolumes(ctx context.Context) error {
	var text strings.Builder
	for _, n := range c.Nodes {
		for i := range volumesPerNode {
			name := fmt.Sprintf("%s-%d", n.Name, i)
			fmt.Fprintf(&text, `---
apiVersion: v1
kind: PersistentVolume
metadata: {name: %[1]s}
spec:
  capacity: {storage: 100Gi}
  accessModes: [ReadWriteOnce]
  storageClassName: folders
  persistentVolumeReclaimPolicy: Retain
  local: {path: /volumes/%[1]s}
  nodeAffinity:
    required: {nodeSelectorTerms: [{matchExpressions: [{key: kubernetes.io/hostname, operator: In, values: [%[2]s]}]}]}
`, name, n.Name)
		}
		folders := fmt.Sprintf("mkdir -p /volumes/%s-{0..%d}", n.Name, volumesPerNode-1)
		if _, err := n.Run(ctx, nil, "/bin/bash", "-c", folders); err != nil {
			return err
		}
	}
	return c.Apply(ctx, text.String())
}
