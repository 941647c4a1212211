package kube

import (
	"errors"
	"testing"
)

// TestReadNodes: the nodes that take every pod come first. In a cluster of several nodes the
// control plane's node is not one of them.
func TestReadNodes(t *testing.T) {
	const list = `{"items": [
		{"metadata": {"name": "kind-control-plane"}, "spec": {"taints": [{"effect": "NoSchedule", "key": "node-role.kubernetes.io/control-plane"}]},
		 "status": {"addresses": [{"type": "InternalIP", "address": "172.18.0.3"}, {"type": "Hostname", "address": "kind-control-plane"}]}},
		{"metadata": {"name": "kind-worker"}, "spec": {},
		 "status": {"addresses": [{"type": "Hostname", "address": "kind-worker"}, {"type": "InternalIP", "address": "172.18.0.2"}, {"type": "InternalIP", "address": "fc00::2"}]}},
		{"metadata": {"name": "kind-worker2"}, "spec": {"unschedulable": true}}
	]}`
	nodes, err := readNodes([]byte(list))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, n := range nodes {
		names = append(names, n.Name+" "+n.Container+" "+n.IP)
	}
	want := []string{"kind-worker kind-worker 172.18.0.2", "kind-control-plane kind-control-plane 172.18.0.3", "kind-worker2 kind-worker2 "}
	for i := range want {
		if len(names) != len(want) || names[i] != want[i] {
			t.Fatalf("nodes are %q, want %q", names, want)
		}
	}
	if _, err := readNodes([]byte(`{"items": [{"spec": {"unschedulable": true}}]}`)); !errors.Is(err, errNoNode) {
		t.Errorf("a cluster that takes no pods: %v", err)
	}
	if _, err := readNodes([]byte("Unauthorized")); err == nil {
		t.Error("nodes were read from a text that is not JSON")
	}
}
