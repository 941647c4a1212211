package charttest

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// secretsDir is the folder of the files of Secrets in pods.
const secretsDir = "/etc/trawl-secrets/"

// secretFiles returns the files from Secrets of a pod's first container, with the Secret of each.
func secretFiles(t *testing.T, p podOf) map[string]string {
	t.Helper()
	return secretsIn(t, p, "secrets")
}

// secretsIn is secretFiles for a volume.
func secretsIn(t *testing.T, p podOf, volume string) map[string]string {
	t.Helper()
	files := map[string]string{}
	for _, v := range p.spec.Volumes {
		if v.Name != volume {
			continue
		}
		if mode := v.Projected.DefaultMode; mode == nil || *mode&0o007 != 0 {
			t.Errorf("%s: everybody reads the files of Secrets: %v", p, mode)
		}
		for _, s := range v.Projected.Sources {
			for _, item := range s.Secret.Items {
				if files[item.Path] != "" {
					t.Errorf("%s: %s comes from two Secrets", p, item.Path)
				}
				files[item.Path] = s.Secret.Name
			}
		}
	}
	return files
}

// secretPaths finds the paths of files of Secrets in settings.
func secretPaths(at any, found map[string]bool) {
	switch is := at.(type) {
	case map[string]any:
		for _, value := range is {
			secretPaths(value, found)
		}
	case string:
		if _, path, ok := strings.Cut(is, secretsDir); ok {
			found[path] = true
		}
	}
}

// TestFilesOfSecretsAreUsed: the program of each pod gets the path of each of the pod's files
// from Secrets, and the pod has each file whose path the program gets.
func TestFilesOfSecretsAreUsed(t *testing.T) {
	seen := 0
	each(t, func(t *testing.T, r rendered) {
		for _, p := range r.pods() {
			c := p.spec.Containers[0]
			used := map[string]bool{}
			if _, ok := roleListeners[p.component()]; ok {
				secretPaths(r.effective(t, p), used)
			}
			for _, text := range append(envOf(c), c.Args...) {
				secretPaths(text, used)
			}
			files := slices.Sorted(maps.Keys(secretFiles(t, p)))
			if paths := slices.Sorted(maps.Keys(used)); !slices.Equal(files, paths) {
				t.Errorf("%s: has %v, uses %v", p, files, paths)
			}
			seen += len(files)
		}
	})
	if seen < 40 {
		t.Errorf("only %d files were looked at", seen)
	}
}

// roleListeners are the roles, with the folder of the certificate of their listeners. Git fetches from the canary by
// plain http.
var roleListeners = map[string]string{"router": "callers", "searcher": "roles", "indexer": "roles", "canary": ""}

// at follows keys into settings; it is empty if there is nothing.
func at(settings map[string]any, keys ...string) string {
	text, found, err := unstructured.NestedString(settings, keys...)
	if err != nil || !found {
		return ""
	}
	return text
}

// TestWhoAsksSpeaksTLS: probes and Prometheus use TLS with exactly the roles that do.
func TestWhoAsksSpeaksTLS(t *testing.T) {
	each(t, func(t *testing.T, r rendered) {
		for _, p := range r.pods() {
			folder, ok := roleListeners[p.component()]
			if !ok {
				continue
			}
			cert, want := at(r.effective(t, p), "tls", "cert-file"), corev1.URIScheme("")
			if cert != "" {
				want = corev1.URISchemeHTTPS
			}
			if cert != "" && cert != secretsDir+folder+"/tls.crt" {
				t.Errorf("%s shows %s", p, cert)
			}
			c := p.spec.Containers[0]
			for _, probe := range []*corev1.Probe{c.StartupProbe, c.ReadinessProbe, c.LivenessProbe} {
				if probe.HTTPGet.Scheme != want {
					t.Errorf("%s: a probe speaks %q, want %q", p, probe.HTTPGet.Scheme, want)
				}
			}
			for _, o := range r.objects {
				if o.kind != "ServiceMonitor" || o.name != p.name {
					continue
				}
				endpoints, _, err := unstructured.NestedSlice(o.tree.Object, "spec", "endpoints")
				if err != nil || len(endpoints) != 1 {
					t.Fatalf("%s: %v, %v", o, endpoints, err)
				}
				if got := at(endpoints[0].(map[string]any), "scheme"); !strings.EqualFold(got, string(want)) {
					t.Errorf("%s speaks %q, want %q", o, got, want)
				}
			}
		}
	})
}

// TestSecretsOfTLS: each role has its own certificate and user, and no other's.
func TestSecretsOfTLS(t *testing.T) {
	want := map[string]map[string]string{
		"router": {
			"callers/tls.crt": "router-tls", "callers/tls.key": "router-tls", "clients/ca.crt": "callers-ca",
			"roles/ca.crt": "router-role", "roles/tls.crt": "router-role", "roles/tls.key": "router-role",
			"etcd/ca.crt": "etcd-ca", "etcd/tls.crt": "etcd-router-cert", "etcd/tls.key": "etcd-router-cert", "etcd/password": "etcd-router-user",
			"nats/ca.crt": "nats-ca", "nats/tls.crt": "nats-client", "nats/tls.key": "nats-client", "nats/creds": "nats-creds",
		},
		"searcher": {
			"roles/ca.crt": "searcher-role", "roles/tls.crt": "searcher-role", "roles/tls.key": "searcher-role",
			"etcd/ca.crt": "etcd-ca", "etcd/tls.crt": "etcd-client", "etcd/tls.key": "etcd-client", "etcd/password": "etcd-user",
		},
		"indexer": {
			"roles/ca.crt": "indexer-role", "roles/tls.crt": "indexer-role", "roles/tls.key": "indexer-role",
			"etcd/ca.crt": "etcd-ca", "etcd/tls.crt": "etcd-client", "etcd/tls.key": "etcd-client", "etcd/password": "etcd-user",
			"nats/ca.crt": "nats-ca", "nats/tls.crt": "nats-client", "nats/tls.key": "nats-client", "nats/creds": "nats-creds",
		},
		"canary": {"callers/tls.crt": "canary-cert", "callers/tls.key": "canary-cert"},
	}
	users := map[string]string{"router": "etcd-router-user", "searcher": "etcd-user", "indexer": "etcd-user"}
	r := renderedAs(t, "mutual-tls", usual)
	for _, p := range r.pods() {
		role := p.component()
		if got := secretFiles(t, p); !maps.Equal(got, want[role]) {
			t.Errorf("%s has %v, want %v", p, got, want[role])
		}
		if role == "canary" {
			continue
		}
		name := fmt.Sprintf("TRAWL_%s_ETCD_USERNAME", strings.ToUpper(role))
		if !slices.ContainsFunc(p.spec.Containers[0].Env, func(e corev1.EnvVar) bool {
			return e.Name == name && e.ValueFrom.SecretKeyRef.Name == users[role] && e.ValueFrom.SecretKeyRef.Key == "username"
		}) {
			t.Errorf("%s is not the user of %s", p, users[role])
		}
	}
}

// TestCertificatesHaveTheirNames: the chart requests from cert-manager the names that routers, searchers
// and the self-test check, in the Secrets that pods mount.
func TestCertificatesHaveTheirNames(t *testing.T) {
	for _, release := range []string{usual, longRelease} {
		r := renderedAs(t, "cert-manager", release)
		names := map[string][]string{} // by Secret
		for _, o := range r.objects {
			if o.kind != "Certificate" {
				continue
			}
			secret := at(o.tree.Object, "spec", "secretName")
			for _, kind := range []string{"dnsNames", "uris"} {
				list, _, err := unstructured.NestedStringSlice(o.tree.Object, "spec", kind)
				if err != nil {
					t.Fatal(err)
				}
				names[secret] = append(names[secret], list...)
			}
		}
		for _, p := range r.pods() {
			files := secretFiles(t, p)
			wanted := map[string]string{"roles/tls.crt": "spiffe://trawl/" + p.component()}
			if p.component() == "router" {
				wanted["callers/tls.crt"] = "trawl.example.com"
			}
			switch p.component() {
			case "selftest":
				wanted = nil
				r.reached(t, p, names)
			case "canary":
				wanted = nil
				for _, door := range []string{"grpc", "http"} {
					host, _, _ := strings.Cut(at(r.effective(t, p), "router", door), ":")
					if all := slices.Concat(slices.Collect(maps.Values(names))...); !slices.Contains(all, host) {
						t.Errorf("%s calls %s, which no certificate names", p, host)
					}
				}
			}
			for file, name := range wanted {
				if !slices.Contains(names[files[file]], name) {
					t.Errorf("%s: %s of the Secret %s has the names %v, want %s", p, file, files[file], names[files[file]], name)
				}
			}
		}
	}
}

// reached checks that each host that the self-test calls is a name in a certificate.
func (r rendered) reached(t *testing.T, p podOf, names map[string][]string) {
	t.Helper()
	all, hosts := slices.Concat(slices.Collect(maps.Values(names))...), 0
	for _, arg := range p.spec.Containers[0].Args {
		flag, list, _ := strings.Cut(arg, "=")
		if flag != "--addr" && flag != "--pods" { // routers' pods are asked for the name of addr
			continue
		}
		for address := range strings.SplitSeq(list, ",") {
			hosts++
			host, _, _ := strings.Cut(address[strings.Index(address, "=")+1:], ":")
			if !slices.Contains(all, host) {
				t.Errorf("%s calls %s, which no certificate names", p, host)
			}
		}
	}
	if hosts != 3 {
		t.Errorf("%s calls %d hosts", p, hosts)
	}
}

// TestHelmTestAsksEveryRole: the self-test waits for the pods of all roles, whichever of them use TLS, and
// trusts the certificate of each listener.
func TestHelmTestAsksEveryRole(t *testing.T) {
	tested := 0
	each(t, func(t *testing.T, r rendered) {
		listeners := map[string]string{} // the certificate of each role
		for _, p := range r.pods() {
			if _, ok := roleListeners[p.component()]; ok {
				listeners[p.component()] = at(r.effective(t, p), "tls", "cert-file")
			}
		}
		for _, p := range r.pods() {
			if p.component() != "selftest" {
				continue
			}
			tested++
			name := strings.TrimSuffix(p.name, "-selftest")
			flags := map[string]string{}
			for _, arg := range p.spec.Containers[0].Args {
				flag, value, _ := strings.Cut(arg, "=")
				flags[flag] = value
			}
			if want := fmt.Sprintf("%s-router-pods:7431", name); flags["--router-pods"] != want {
				t.Errorf("%s asks the routers at %q, want %s", p, flags["--router-pods"], want)
			}
			if want := fmt.Sprintf("searcher=%[1]s-searcher-pods:7441,indexer=%[1]s-indexer-pods:7451", name); flags["--pods"] != want {
				t.Errorf("%s asks %q, want %s", p, flags["--pods"], want)
			}
			_, public := flags["--tls"]
			if over := public || flags["--ca-file"] != ""; over != (listeners["router"] != "") {
				t.Errorf("%s speaks TLS with routers: %v; they show %q", p, over, listeners["router"])
			}
			if over := flags["--pods-ca-file"] != ""; over != (listeners["searcher"] != "") || over != (listeners["indexer"] != "") {
				t.Errorf("%s speaks TLS with the other roles: %v; they show %v", p, over, listeners)
			}
		}
	})
	if tested < 8 {
		t.Errorf("only %d self-tests were looked at", tested)
	}
}

// TestHalfOfTLSIsRefused: errors name what is missing.
func TestHalfOfTLSIsRefused(t *testing.T) {
	for _, tt := range []struct{ values, want string }{
		{`{tls: {roles: {existingSecrets: {router: a}}}}`, "tls.roles.existingSecrets"},
		{`{tls: {callers: {clientCASecret: a}}, selfTest: false}`, "tls.callers.existingSecret"},
		{`{tls: {callers: {existingSecret: b, clientCASecret: a}}}`, "selfTest"},
		{`{tls: {callers: {existingSecret: b, clientCASecret: a}}, selfTest: false}`, "canary.certSecret"},
		{`{tls: {roles: {certManager: {enabled: true}}}}`, "tls.roles.certManager.issuerRef.name"},
		{`{tls: {callers: {certManager: {enabled: true}}}}`, "tls.callers.certManager.issuerRef.name"},
		{`{nats: {existingSecret: a, credsSecret: b}}`, "credsSecret"},
		{`{tls: {callers: {key: secret}}}`, "/tls/callers"},
	} {
		values := valuesOf(t, "external")
		changed := map[string]any{}
		if err := yaml.UnmarshalStrict([]byte(tt.values), &changed); err != nil {
			t.Fatal(err)
		}
		for key, value := range changed {
			if group, ok := values[key].(map[string]any); ok {
				maps.Copy(group, value.(map[string]any))
				continue
			}
			values[key] = value
		}
		if _, err := render(usual, values); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v; want %s named", tt.values, err, tt.want)
		}
	}
}
