package k8s

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"net"
)

// renewed replaces the certificates of all roles while queries run, as cert-manager does: the Secrets keep their names,
// and no pod restarts. Every answer is complete, and routers and searchers present the new certificates. The next parts,
// in which routers call new searchers, use them.
func (e *e2e) renewed() {
	before := e.restarts()
	e.kubectl("expose", "pod", "trawl-searcher-0", "--name=door", "--namespace="+e.namespace, "--type=NodePort", "--port=7440")
	door := e.Nodes[0].IP + ":" + e.kubectl("get", "service/door", "--namespace="+e.namespace, "--output=jsonpath={.spec.ports[0].nodePort}")
	stop := e.asking()
	e.secrets(e.namespace, e.certificates())
	// The kubelet updates the files when it next syncs a pod: every minute, or at once when the pod changes.
	e.kubectl("annotate", "pods", "--all", "--namespace="+e.namespace, "test/renewed=true")
	for _, listener := range []struct{ secret, address, name string }{{"callers", e.router, "trawl-router"}, {"searcher", door, "trawl-searcher-pods"}} {
		conf := e.showing("router")
		conf.ServerName = listener.name
		want, err := tls.LoadX509KeyPair(e.ca.certs[listener.secret].Cert, e.ca.certs[listener.secret].Key)
		e.must(err)
		eventually(e.t, "the new certificate is shown: "+listener.secret, func(ctx context.Context) error {
			conn, err := (&tls.Dialer{NetDialer: &net.Dialer{}, Config: conf}).DialContext(ctx, "tcp", listener.address)
			if err != nil {
				return err
			}
			defer conn.Close()
			if shown := conn.(*tls.Conn).ConnectionState().PeerCertificates[0]; !bytes.Equal(shown.Raw, want.Certificate[0]) {
				return errors.New("it is still the old one")
			}
			return nil
		})
	}
	stop().nothingMissed(e)
	e.kubectl("delete", "service/door", "--namespace="+e.namespace)
	e.indexAndSearch()
	if after := e.restarts(); after != before {
		e.t.Errorf("containers were started again: %d times, before %d", after, before)
	}
}

// restarts counts the restarts of the release's containers.
func (e *e2e) restarts() (n int) {
	e.t.Helper()
	list, err := e.pods(e.t.Context(), e.namespace)
	e.must(err)
	for _, p := range list {
		n += p.restarts
	}
	return n
}
