package k8s

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"strings"
	"text/template"
)

//go:embed servers.yaml
var serversYAML string

var serversTemplate = template.Must(template.New("servers").Parse(serversYAML))

// server is one of the servers that Trawl relies on and that its operators provide.
type server struct {
	Name, Image string
	Port        int
	// Path and Health are the HTTP path and port of its health check.
	Path   string
	Health int
	Args   []string
	Env    map[string]string
	// Secured gives it the certificate in the Secret of its name. TLS makes the health check use https.
	Secured, TLS bool
	// Bucket mounts a folder that the S3 server takes for a bucket.
	Bucket bool
}

// passwordOf is the password of a user of etcd, NATS or S3.
func passwordOf(user string) string { return "hunter2-" + user }

// startServers starts etcd, NATS and S3 in a namespace. If they are secured, etcd requires TLS with a client
// certificate, and NATS and S3 speak TLS; their certificates are in the Secrets etcd, nats and s3. NATS always
// requires a user and a password. Their data outlives their pods.
func (e *e2e) startServers(namespace string, secured bool) {
	e.t.Helper()
	host := "." + namespace
	etcd := server{
		Name: "etcd", Image: "etcd", Port: 2379, Path: "/health", Health: 2381,
		Args: []string{
			"--name=etcd", "--data-dir=/data/etcd", "--listen-peer-urls=http://127.0.0.1:2380", "--listen-metrics-urls=http://0.0.0.0:2381",
			"--listen-client-urls=http://0.0.0.0:2379", "--advertise-client-urls=http://etcd" + host + ":2379",
		},
	}
	nats := server{
		Name: "nats", Image: "nats", Port: 4222, Path: "/healthz", Health: 8222,
		Args: []string{"--jetstream", "--store_dir=/data", "--port=4222", "--http_port=8222", "--user=trawl", "--pass=" + passwordOf("trawl")},
	}
	if secured {
		for i, arg := range etcd.Args {
			if strings.Contains(arg, "-client-urls=") {
				etcd.Args[i] = strings.Replace(arg, "=http:", "=https:", 1)
			}
		}
		etcd.Args = append(etcd.Args, "--cert-file=/tls/tls.crt", "--key-file=/tls/tls.key", "--trusted-ca-file=/tls/ca.crt", "--client-cert-auth",
			"--enable-grpc-gateway=false")
		nats.Args = append(nats.Args, "--tls", "--tlscert=/tls/tls.crt", "--tlskey=/tls/tls.key")
	}
	s3 := server{
		Name: "s3", Image: "versitygw", Port: 7070, Path: "/health", Health: 7070, Bucket: true,
		Args: []string{"--port=:7070", "--health=/health", "--region=us-east-1", "posix", "--sidecar=/meta", "/data"},
		Env:  map[string]string{"ROOT_ACCESS_KEY_ID": "trawl", "ROOT_SECRET_ACCESS_KEY": passwordOf("s3")},
	}
	if secured {
		s3.TLS = true
		s3.Args = append([]string{"--cert=/tls/tls.crt", "--key=/tls/tls.key"}, s3.Args...)
		etcd.Secured, nats.Secured, s3.Secured = true, true, true
	}
	var manifest bytes.Buffer
	e.must(serversTemplate.Execute(&manifest, map[string]any{
		"Namespace": namespace, "Images": images, "Node": e.Nodes[0].Name, "Servers": []server{etcd, nats, s3},
	}))
	e.must(e.Apply(e.t.Context(), manifest.String()))
	for _, name := range []string{"etcd", "nats", "s3"} {
		e.kubectl("rollout", "status", "--namespace="+namespace, "statefulset/"+name, "--timeout=3m")
	}
}

// JSON formats a value as JSON, which is YAML too.
func (server) JSON(value any) (string, error) {
	text, err := json.Marshal(value)
	return string(text), err
}

// secrets makes Secrets in a namespace.
func (e *e2e) secrets(namespace string, all map[string]map[string]string) {
	e.t.Helper()
	var manifest strings.Builder
	for name, data := range all {
		encoded := map[string][]byte{} // base64 instead of stringData, which a server-side apply would not update
		for key, value := range data {
			encoded[key] = []byte(value)
		}
		text, err := json.Marshal(encoded)
		e.must(err)
		if namespace == e.namespace {
			e.own["secret/"+name] = true
		}
		kind := "Opaque"
		if data["tls.key"] != "" {
			kind = "kubernetes.io/tls" // as cert-manager makes them
		}
		fmt.Fprintf(&manifest, "---\napiVersion: v1\nkind: Secret\nmetadata: {name: %s, namespace: %s}\ntype: %s\ndata: %s\n", name, namespace, kind, text)
	}
	e.must(e.Apply(e.t.Context(), manifest.String()))
}

// port returns the address at which this machine reaches a port of a NodePort Service.
func (e *e2e) port(namespace, service, name string) string {
	e.t.Helper()
	return e.Nodes[0].IP + ":" + e.kubectl("get", "--namespace="+namespace, "service/"+service, `--output=jsonpath={.spec.ports[?(@.name=="`+name+`")].nodePort}`)
}
