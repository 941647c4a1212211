package cli

import (
	"path/filepath"
	"strings"
	"testing"
)

// TestSettingsOfBackends: invalid settings fail before any connection is made, and no output shows
// a secret.
func TestSettingsOfBackends(t *testing.T) {
	empty, garbled := filepath.Join(t.TempDir(), "empty"), filepath.Join(t.TempDir(), "garbled")
	put(t, empty, []byte("\n"))
	put(t, garbled, []byte("neither a JWT nor a seed\n"))
	for _, c := range []struct {
		args []string
		exit int
		want string
	}{
		{[]string{"--etcd-endpoints", "https://a:1,http://b:1"}, 2, "https:// for all endpoints"},
		{[]string{"--etcd-endpoints", "http://trawl:hunter2@a:1"}, 2, "etcd.password-file"},
		{[]string{"--etcd-username", "trawl"}, 2, "etcd.password-file"},
		{[]string{"--etcd-tls-ca-file", "/ca"}, 2, "https:// with"},
		{[]string{"--etcd-endpoints", "https://a:1", "--etcd-tls-cert-file", "/c"}, 2, "etcd.tls.key-file"},
		{[]string{"--etcd-endpoints", "https://a:1", "--etcd-tls-ca-file", "/nowhere"}, 1, "/nowhere"},
		{[]string{"--etcd-username", "trawl", "--etcd-password-file", empty}, 1, empty},
		{[]string{"--nats-url", "nats://trawl:hunter2@a:1"}, 2, "nats.creds-file"},
		{[]string{"--nats-url", "nats://a:1,nats://hunter2@b:1"}, 2, "nats.creds-file"},
		{[]string{"--nats-creds-file", "/c", "--nats-username", "u", "--nats-password-file", "/p"}, 2, "one way to log in"},
		{[]string{"--nats-creds-file", "/nowhere"}, 1, "/nowhere"},
		{[]string{"--nats-creds-file", empty}, 1, empty},
		{[]string{"--nats-creds-file", garbled}, 1, "nkey of " + garbled},
		{[]string{"--nats-tls-ca-file", empty}, 1, "no certificate in PEM form"},
		{[]string{"--tls-cert-file", "/c"}, 2, "tls.key-file"},
		{[]string{"--tls-client-ca-file", "/c"}, 2, "tls.client-ca-file"},
		{[]string{"--searcher-tls-cert-file", "/c", "--searcher-tls-key-file", "/k"}, 2, "searcher.tls.ca-file"},
		{[]string{"--searcher-tls-ca-file", "/nowhere"}, 1, "/nowhere"},
	} {
		exit, out, errs := run(t, nil, append([]string{"router", "--grpc", "127.0.0.1:0", "--http", "127.0.0.1:0"}, c.args...)...)
		if exit != c.exit || !strings.Contains(errs, c.want) || strings.Contains(out+errs, "hunter2") {
			t.Errorf("%v: exit %d, want %d with %q: %s%s", c.args, exit, c.exit, c.want, out, errs)
		}
	}
}
