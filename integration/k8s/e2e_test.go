package k8s

import (
	"context"
	"crypto/tls"
	_ "embed"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/trawl-search/trawl/integration/k8s/kube"
	"github.com/trawl-search/trawl/internal/testrun"
)

// e2e is Trawl on a cluster. The parts of the test run in order, each on the state that the
// previous one left.
type e2e struct {
	*kube.Cluster
	release

	t      *testing.T // of the current part
	outer  *testing.T // of all parts
	rng    *rand.Rand
	dir    string // where the commands of the README run
	values string // the values file for this cluster
	git    string // HOST:PORT of the Git server, as this machine reaches it
	repos  []*repository
}

// release is the Helm release that the parts test.
type release struct {
	namespace string
	router    string // HOST:PORT of the routers' Service
	token     string
	tls       *tls.Config     // of callers; nil: plain text
	ca        *authority      // of a secured release
	own       map[string]bool // the test's own objects in the namespace, as secret/NAME
}

// part is one step of the test.
type part struct {
	name string
	do   func(*e2e)
	// ownNodes is why the part needs a cluster that the test started; empty if it does not.
	ownNodes string
}

var parts = []part{
	{name: "install as the README says", do: (*e2e).readme},
	{name: "helm test", do: (*e2e).helmTest},
	{name: "index and search", do: (*e2e).indexAndSearch},
	{name: "something is missing", do: (*e2e).missing},
	{name: "uninstall", do: (*e2e).uninstall},
	{name: "upgrade in the wrong order", do: (*e2e).upgradeFromBefore},
	{name: "everything secured", do: (*e2e).secured},
	{name: "certificates are renewed", do: (*e2e).renewed},
	{name: "scale searchers", do: (*e2e).scale},
	{name: "upgrade", do: (*e2e).upgrade},
	{name: "rollback", do: (*e2e).rollback},
	{name: "faults", do: (*e2e).faults, ownNodes: "it stops nodes, and needs one in each of three zones"},
	{name: "etcd is away", do: (*e2e).outages},
	{name: "the canary rings", do: (*e2e).canaryRings},
	{name: "uninstall what is secured", do: (*e2e).uninstall},
	{name: "terraform", do: (*e2e).terraform},
}

// skipped returns why the part cannot run; empty if it can.
func (p part) skipped(existing bool) string {
	if existing {
		return p.ownNodes
	}
	return ""
}

func TestKubernetes(t *testing.T) {
	chosen := need(t)
	lock(t)
	start := time.Now()
	e := &e2e{t: t, outer: t, rng: testrun.Rand(t), Cluster: chosen.cluster(t), dir: t.TempDir(), release: release{namespace: "trawl"}}
	t.Logf("the cluster is ready, and has all images, after %.0f s", time.Since(start).Seconds())
	e.prepare()
	for _, part := range parts {
		well := t.Run(part.name, func(t *testing.T) {
			if reason := part.skipped(e.Existing()); reason != "" {
				t.Skip("NOT TESTED on a cluster that exists: " + reason)
			}
			start := time.Now()
			within := *e
			within.t = t
			part.do(&within)
			within.t = e.t
			*e = within
			t.Logf("it took %.1f s", time.Since(start).Seconds())
		})
		if !well {
			break // the others would fail for the same reason
		}
	}
}

//go:embed values.yaml
var values string

//go:embed git.yaml
var gitServer string

// prepare makes what must exist before Trawl is installed: a namespace that accepts
// restricted pods only, and a Git server.
func (e *e2e) prepare() {
	e.t.Helper()
	e.values = filepath.Join(e.dir, "values.yaml")
	own := strings.NewReplacer("NETWORK", e.Network(), "NODE", e.Nodes[0].Name)
	e.must(os.WriteFile(e.values, []byte(own.Replace(values)), 0o600))
	e.must(e.Apply(e.t.Context(), strings.ReplaceAll(gitServer, "NODE", e.Nodes[0].Name)))
	e.kubectl("rollout", "status", "--namespace=git", "deployment/git", "--timeout=3m")
	e.git = e.port("git", "git", "http")
	eventually(e.t, "the Git server is reached", func(ctx context.Context) error {
		conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", e.git)
		if err != nil {
			return err
		}
		return conn.Close()
	})
	e.makeRepositories()
}

func (e *e2e) must(err error) {
	e.t.Helper()
	if err != nil {
		e.t.Fatal(err)
	}
}

// kubectl runs kubectl and returns what it printed.
func (e *e2e) kubectl(args ...string) string {
	e.t.Helper()
	out, err := e.Kubectl(e.t.Context(), args...)
	e.must(err)
	return out
}

// helm runs helm in the namespace and returns what it printed.
func (e *e2e) helm(args ...string) string {
	e.t.Helper()
	out, err := e.Helm(e.t.Context(), append(args, "--namespace="+e.namespace)...)
	e.must(err)
	return out
}

// pod has what the tests need to know about a pod.
type pod struct {
	name, node, role, image string
	ready                   bool
	restarts                int
	// waiting is why a container does not start.
	waiting string
}

// pods returns the pods of a namespace.
func (e *e2e) pods(ctx context.Context, namespace string) (list []pod, err error) {
	out, err := e.Kubectl(ctx, "get", "pods", "--namespace="+namespace, "--output=json")
	if err != nil {
		return nil, err
	}
	var all struct {
		Items []struct {
			Metadata struct {
				Name   string
				Labels map[string]string
			}
			Spec struct {
				NodeName   string
				Containers []struct{ Image string }
			}
			Status struct {
				Conditions        []struct{ Type, Status string }
				ContainerStatuses []struct {
					RestartCount int
					State        struct {
						Waiting struct{ Reason, Message string }
					}
				}
			}
		}
	}
	if err := json.Unmarshal([]byte(out), &all); err != nil {
		return nil, fmt.Errorf("read the pods: %w", err)
	}
	for _, item := range all.Items {
		p := pod{name: item.Metadata.Name, node: item.Spec.NodeName, role: item.Metadata.Labels["app.kubernetes.io/component"], image: item.Spec.Containers[0].Image}
		for _, c := range item.Status.Conditions {
			p.ready = p.ready || c.Type == "Ready" && c.Status == "True"
		}
		for _, c := range item.Status.ContainerStatuses {
			p.restarts += c.RestartCount
			p.waiting += c.State.Waiting.Reason + " " + c.State.Waiting.Message
		}
		list = append(list, p)
	}
	return list, nil
}

// patience bounds every wait for something that must happen. It is large, so that a test
// fails only when nothing moves any more.
const patience = 4 * time.Minute

// eventually waits until f returns nil.
func eventually(t *testing.T, what string, f func(ctx context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for {
		err := f(ctx)
		if err == nil {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("not after %v: %s: %v", patience, what, err)
		case <-time.After(300 * time.Millisecond):
		}
	}
}

// settled waits until all nodes and all pods of Trawl are ready.
func (e *e2e) settled() {
	e.t.Helper()
	e.must(e.WaitNodes(e.t.Context()))
	for _, kind := range []string{"deployment/trawl-router", "deployment/trawl-indexer", "statefulset/trawl-searcher", "deployment/trawl-canary"} {
		e.kubectl("rollout", "status", "--namespace="+e.namespace, kind, "--timeout=4m")
	}
	eventually(e.t, "all pods are ready", func(ctx context.Context) error {
		list, err := e.pods(ctx, e.namespace)
		for _, p := range list {
			if !p.ready && p.role != "selftest" && err == nil {
				err = fmt.Errorf("%s on %s is not ready", p.name, p.node)
			}
		}
		return err
	})
}
