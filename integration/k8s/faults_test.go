package k8s

import (
	"strings"
	"testing"
	"time"

	"github.com/trawl-search/trawl/integration/k8s/kube"
)

// faults breaks one part of the cluster after the other while queries run. At replication 2
// every answer is complete.
func (e *e2e) faults() {
	e.set("searcher.replicas=4")
	e.part("a zone is lost", (*e2e).loseZone)
	e.set("searcher.replicas=2")
	e.part("a node hangs", func(e *e2e) {
		n := e.worker()
		e.must(n.Pause(e.t.Context()))
		e.t.Logf("%s hangs", n.Name)
		e.unready(n)
		e.must(n.Unpause(e.t.Context()))
		e.t.Logf("%s goes on", n.Name)
	})
	e.part("a node loses its power", func(e *e2e) {
		n := e.worker()
		e.must(n.Kill(e.t.Context()))
		e.t.Logf("%s is off", n.Name)
		e.unready(n)
		e.must(n.Start(e.t.Context()))
		e.t.Logf("%s is on", n.Name)
	})
	e.part("pods are deleted", (*e2e).deletePods)
}

// loseZone pauses a node, and with it one of the two zones with searchers, two in each. Queries stay
// complete only if each shard is in both zones.
func (e *e2e) loseZone() {
	in := map[string]int{}
	for zone := range strings.FieldsSeq(e.kubectl("get", "pods", "--namespace="+e.namespace, "--selector=app.kubernetes.io/component=searcher",
		`--output=jsonpath={range .items[*]}{.metadata.labels.topology\.kubernetes\.io/zone} {end}`)) {
		in[zone]++
	}
	if len(in) != 2 || in["zone-node1"] != 2 || in["zone-node2"] != 2 {
		e.t.Fatalf("the searchers are in the zones %v", in)
	}
	n := e.worker()
	e.must(n.Pause(e.t.Context()))
	e.t.Logf("zone-%s is lost", n.Name)
	e.unready(n)
	e.must(n.Unpause(e.t.Context()))
	e.t.Logf("zone-%s is back", n.Name)
}

// part does something to the cluster while queries run, and waits until the cluster has settled.
func (e *e2e) part(name string, do func(*e2e)) {
	e.t.Run(name, func(t *testing.T) {
		within := *e
		within.t = t
		stop := within.asking()
		do(&within)
		within.settled()
		stop().nothingMissed(&within)
	})
}

// worker picks a node that may fail: not the one with the control plane and the servers without
// replicas.
func (e *e2e) worker() *kube.Node { return e.Nodes[1+e.rng.IntN(len(e.Nodes)-1)] }

// unready waits until the cluster has noticed that a node is away.
func (e *e2e) unready(n *kube.Node) {
	e.t.Helper()
	e.kubectl("wait", "--for=condition=Ready=unknown", "node/"+n.Name, "--timeout=3m")
}

// deletePods deletes pods of Trawl, one after the other, some of them without a grace period.
func (e *e2e) deletePods() {
	for start := time.Now(); time.Since(start) < time.Minute; {
		list, err := e.pods(e.t.Context(), e.namespace)
		e.must(err)
		var roles []pod
		for _, p := range list {
			if p.role == "router" || p.role == "searcher" || p.role == "indexer" {
				roles = append(roles, p)
			}
		}
		p := roles[e.rng.IntN(len(roles))]
		args := []string{"delete", "pod", p.name, "--namespace=" + e.namespace}
		// After a forced deletion a StatefulSet starts the next pod while the old one still runs,
		// on the same cache folder. Kubernetes advises against it.
		if p.role != "searcher" && e.rng.IntN(2) == 0 {
			args = append(args, "--grace-period=0", "--force")
		}
		e.kubectl(args...)
		e.t.Logf("deleted %v", args[2:])
		e.settled()
	}
}
