package k8s

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/trawl-search/trawl/integration/k8s/kube"
)

// wanted is the environment variable that selects the cluster: "cached" runs the tests if all
// programs are built, "build" builds what is missing, and "existing" runs them on the cluster of
// KUBECONFIG.
const wanted = "TRAWL_TEST_K8S"

// howTo explains how to run the tests.
const howTo = "\"make e2e-k8s\" builds what is missing and runs them"

// choice is the cluster that the tests use.
type choice struct {
	// skip is the reason if there is no cluster; otherwise empty.
	skip string
	// kubeconfig is the file of an existing cluster; empty for one that the tests start.
	kubeconfig string
}

// choose selects a cluster by the environment. KUBECONFIG alone selects none: it may name a
// cluster that people work with.
func choose(wanted, kubeconfig string, missing func() ([]string, error)) (choice, error) {
	switch wanted {
	case "":
		return choice{skip: howTo}, nil
	case "build":
		return choice{}, nil
	case "cached":
		names, err := missing()
		if err == nil && len(names) > 0 {
			return choice{skip: fmt.Sprintf("%s must be built, which takes minutes; %s", strings.Join(names, ", "), howTo)}, nil
		}
		return choice{}, err
	case "existing":
		if kubeconfig == "" || strings.Contains(kubeconfig, ":") {
			return choice{}, fmt.Errorf("KUBECONFIG is %q: want the file of the cluster to use", kubeconfig)
		}
		return choice{kubeconfig: kubeconfig}, nil
	}
	return choice{}, fmt.Errorf("TRAWL_TEST_K8S is %q: want build, cached or existing", wanted)
}

// need returns the cluster to use, and skips the test if there is none.
func need(t *testing.T) choice {
	t.Helper()
	if err := kube.Ping(t.Context()); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal(err)
		}
		t.Skipf("NOT TESTED on Kubernetes: %v", err)
	}
	c, err := choose(os.Getenv(wanted), os.Getenv("KUBECONFIG"), func() ([]string, error) { return kube.Missing(t.Context()) })
	if err != nil {
		t.Fatal(err)
	}
	if c.skip != "" {
		t.Skip("NOT TESTED on Kubernetes: " + c.skip)
	}
	return c
}

// cluster returns the cluster with all images. The test's end removes what the test made.
func (c choice) cluster(t *testing.T) *kube.Cluster {
	t.Helper()
	ctx := t.Context()
	cluster, programs, err := c.open(t)
	t.Cleanup(func() {
		if t.Failed() && cluster != nil {
			writeLogs(t, cluster)
		}
	})
	if err == nil {
		err = makeImages(ctx, cluster, programs)
	}
	if err != nil {
		t.Fatal(err)
	}
	return cluster
}

// open starts a cluster, or connects to an existing one.
func (c choice) open(t *testing.T) (cluster *kube.Cluster, programs kube.Programs, err error) {
	t.Helper()
	ctx := t.Context()
	if c.kubeconfig != "" {
		if programs, err = kube.BuildServers(ctx, os.Stderr); err != nil {
			return nil, programs, err
		}
		if cluster, err = kube.Use(ctx, programs, c.kubeconfig, t.TempDir()); err != nil {
			return nil, programs, err
		}
		return cluster, programs, claim(t, cluster)
	}
	if left, err := kube.Sweep(ctx); err != nil || len(left) > 0 {
		t.Logf("an earlier run left %v: %v", left, err)
	}
	if programs, err = kube.Build(ctx, os.Stderr); err != nil {
		return nil, programs, err
	}
	t.Cleanup(func() {
		if _, err := kube.Sweep(context.Background()); err != nil {
			t.Error(err)
		}
	})
	cluster, err = kube.Start(ctx, programs, t.TempDir(), os.Stderr)
	return cluster, programs, err
}

// namespaces returns the namespaces that the tests make.
func namespaces() []string {
	all := []string{"git", "trawl", "before", "before-servers", "servers", "secured"}
	for _, l := range lacks {
		all = append(all, l.namespace())
	}
	return all
}

// claim fails if an existing cluster has one of the tests' namespaces. Otherwise it arranges
// their removal at the end of the test.
func claim(t *testing.T, c *kube.Cluster) error {
	t.Helper()
	out, err := c.Kubectl(t.Context(), "get", "namespaces", "--output=jsonpath={.items[*].metadata.name}")
	if err != nil {
		return err
	}
	if taken := occupied(strings.Fields(out)); len(taken) > 0 {
		return fmt.Errorf("the cluster has the namespaces %s, which this test makes: delete them or use another cluster", strings.Join(taken, ", "))
	}
	t.Cleanup(func() {
		ctx := context.Background()
		if _, err := c.Kubectl(ctx, append([]string{"delete", "namespace", "--ignore-not-found", "--timeout=5m"}, namespaces()...)...); err != nil {
			t.Error(err)
		}
		// The servers' data is in folders on the node.
		if _, err := c.Nodes[0].Run(ctx, nil, "/bin/bash", "-c", "rm -rf /volumes/{servers,before-servers}-{etcd,nats,s3}"); err != nil {
			t.Error(err)
		}
	})
	return nil
}

// occupied returns those of a cluster's namespaces that the tests would make.
func occupied(there []string) (taken []string) {
	for _, name := range namespaces() {
		if slices.Contains(there, name) {
			taken = append(taken, name)
		}
	}
	return taken
}

func TestChoose(t *testing.T) {
	built := func() ([]string, error) { return nil, nil }
	unbuilt := func() ([]string, error) { return []string{"helm"}, nil }
	broken := func() ([]string, error) { return nil, os.ErrPermission }
	for _, c := range []struct {
		wanted, kubeconfig string
		missing            func() ([]string, error)
		skip, existing     string // a part of the reason, and the kubeconfig
		fails              bool
	}{
		{wanted: "", kubeconfig: "/home/me/.kube/config", missing: built, skip: "make e2e-k8s"},
		{wanted: "build", kubeconfig: "/home/me/.kube/config", missing: unbuilt},
		{wanted: "cached", missing: built},
		{wanted: "cached", missing: unbuilt, skip: "helm must be built"},
		{wanted: "cached", missing: broken, fails: true},
		{wanted: "existing", kubeconfig: "kind.conf", missing: unbuilt, existing: "kind.conf"},
		{wanted: "existing", missing: built, fails: true},
		{wanted: "existing", kubeconfig: "a:b", missing: built, fails: true},
		{wanted: "yes", missing: built, fails: true},
	} {
		got, err := choose(c.wanted, c.kubeconfig, c.missing)
		if (err != nil) != c.fails || got.kubeconfig != c.existing || (got.skip != "") != (c.skip != "") || !strings.Contains(got.skip, c.skip) {
			t.Errorf("%q with KUBECONFIG=%q: %+v, %v", c.wanted, c.kubeconfig, got, err)
		}
	}
}

// TestOccupied: a cluster in which people use Trawl is left alone.
func TestOccupied(t *testing.T) {
	if taken := occupied([]string{"default", "trawl", "no-etcd", "kube-system"}); !slices.Equal(taken, []string{"trawl", "no-etcd"}) {
		t.Errorf("occupied are %q", taken)
	}
	if taken := occupied([]string{"default", "kube-system"}); taken != nil {
		t.Errorf("occupied are %q", taken)
	}
}

// TestPartsOfAnExistingCluster: on an existing cluster exactly the parts that need nodes of
// their own are skipped, with the reason.
func TestPartsOfAnExistingCluster(t *testing.T) {
	var skipped []string
	for _, p := range parts {
		if p.skipped(true) != "" {
			skipped = append(skipped, p.name)
		}
		if reason := p.skipped(false); reason != "" {
			t.Errorf("%s is skipped on a cluster of its own: %s", p.name, reason)
		}
	}
	if !slices.Equal(skipped, []string{"faults"}) {
		t.Errorf("skipped are %q", skipped)
	}
}
