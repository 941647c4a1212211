package k8s

import (
	"context"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/trawl-search/trawl/internal/pinned"
)

// lack is something that a release is configured to use and that does not exist.
type lack struct {
	what  string
	set   string
	roles []string // that cannot be ready
	says  string   // what each of them must report
}

var lacks = []lack{
	{"etcd", "etcd.endpoints={http://no-etcd.trawl:2379}", []string{"router", "searcher", "indexer"}, "etcd"},
	// Routers answer without NATS: requests wait in etcd.
	{"nats", "nats.url=nats://no-nats.trawl:4222", []string{"indexer"}, "NATS at nats://no-nats.trawl:4222"},
	{"bucket", "bucket.url=s3://no-bucket?endpoint=http://trawl-s3.trawl:7070&region=us-east-1", []string{"searcher", "indexer"}, "no-bucket"},
	{"secret", "bucket.existingSecret=no-secret", []string{"searcher", "indexer"}, `secret "no-secret" not found`},
}

// longEnough is an age at which a crash-looping pod has restarted at least once.
const longEnough = 45 * time.Second

// missing installs releases that each lack something. The pods that need it report what is
// missing, and wait.
func (e *e2e) missing() {
	for _, l := range lacks {
		e.without(l)
	}
	start := time.Now()
	for _, l := range lacks {
		e.named(l)
		e.t.Logf("without %s: said after %.0f s at most", l.what, time.Since(start).Seconds())
	}
	time.Sleep(time.Until(start.Add(longEnough)))
	for _, l := range lacks {
		list, err := e.pods(e.t.Context(), l.namespace())
		e.must(err)
		for _, p := range list {
			if p.restarts > 0 {
				e.t.Errorf("without %s %s was started again, %d times", l.what, p.name, p.restarts)
			}
		}
		e.must(e.remove(l))
	}
}

func (l lack) namespace() string { return "no-" + l.what }

func (e *e2e) remove(l lack) error {
	if _, err := e.Helm(e.t.Context(), "uninstall", "trawl", "--namespace="+l.namespace()); err != nil {
		return err
	}
	_, err := e.Kubectl(e.t.Context(), "delete", "namespace", l.namespace(), "--wait=false")
	return err
}

// without installs a release that lacks something. For the rest it uses the servers of the
// healthy release.
func (e *e2e) without(l lack) {
	e.t.Helper()
	root, err := pinned.Repository(e.t.Context())
	e.must(err)
	e.kubectl("create", "namespace", l.namespace())
	keys := filepath.Join(e.dir, "keys.env")
	var text strings.Builder
	for _, key := range []string{"access-key", "secret-key", "username", "password"} {
		encoded := e.kubectl("get", "secret/trawl-evaluation", "--namespace="+e.namespace, "--output=jsonpath={.data."+key+"}")
		value, err := base64.StdEncoding.DecodeString(encoded)
		e.must(err)
		fmt.Fprintf(&text, "%s=%s\n", key, value)
	}
	e.must(os.WriteFile(keys, []byte(text.String()), 0o600))
	e.kubectl("create", "secret", "generic", "servers", "--namespace="+l.namespace(), "--from-env-file="+keys)
	_, err = e.Helm(e.t.Context(), "install", "trawl", filepath.Join(root, "charts", "trawl"), "--namespace="+l.namespace(), "--values="+e.values,
		"--set=etcd.endpoints={http://trawl-etcd.trawl:2379}", "--set=nats.url=nats://trawl-nats.trawl:4222", "--set=nats.existingSecret=servers",
		"--set=bucket.url=s3://trawl?endpoint=http://trawl-s3.trawl:7070&region=us-east-1", "--set=bucket.existingSecret=servers", "--set="+l.set,
		// Room for all of them at once.
		"--set=router.replicas=1,searcher.replicas=1,indexer.replicas=1",
		"--set=router.resources.requests.cpu=10m,searcher.resources.requests.cpu=10m,indexer.resources.requests.cpu=10m")
	e.must(err)
}

// named waits until every pod that needs the missing thing reports it and is not ready.
func (e *e2e) named(l lack) {
	e.t.Helper()
	eventually(e.t, "the pods say that there is no "+l.what, func(ctx context.Context) error {
		list, err := e.pods(ctx, l.namespace())
		if err != nil {
			return err
		}
		for _, role := range l.roles {
			if count(list, role) == 0 {
				return fmt.Errorf("there are no pods of the %s", role)
			}
		}
		for _, p := range list {
			if says := e.says(ctx, l.namespace(), p); strings.Contains(strings.Join(l.roles, " "), p.role) && (p.ready || !strings.Contains(says, l.says)) {
				return fmt.Errorf("%s: ready is %t, and it says %q", p.name, p.ready, says)
			}
		}
		return nil
	})
}

// says returns why a pod is not ready, in Kubernetes's words or its own.
func (e *e2e) says(ctx context.Context, namespace string, p pod) string {
	if p.waiting = strings.TrimSpace(p.waiting); p.waiting != "" {
		return p.waiting
	}
	port := map[string]string{"router": "7431", "searcher": "7441", "indexer": "7451"}[p.role]
	ip, err := e.Kubectl(ctx, "get", "pod", p.name, "--namespace="+namespace, "--output=jsonpath={.status.podIP}")
	if err != nil {
		return err.Error()
	}
	ask := fmt.Sprintf(`exec 3<>/dev/tcp/%s/%s && printf 'GET /readyz HTTP/1.0\r\n\r\n' >&3 && cat <&3`, ip, port)
	out, err := e.Nodes[0].Run(ctx, nil, "/bin/bash", "-c", ask)
	if err != nil {
		return err.Error()
	}
	return out
}
