package charttest

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// TestBadValuesAreRefused: errors name the path of the wrong value.
func TestBadValuesAreRefused(t *testing.T) {
	for _, tt := range []struct{ values, path string }{
		{`{}`, "/etcd/endpoints"},
		{`{}`, "/nats/url"},
		{`{}`, "/bucket/url"},
		{`{etcd: {endpoints: ["etcd:2379"]}}`, "/etcd/endpoints/0"},
		{`{etcd: {endpoints: ["http://user:password@etcd:2379"]}}`, "/etcd/endpoints/0"},
		{`{nats: {url: "nats://user:password@nats:4222"}}`, "/nats/url"},
		{`{bucket: {url: "s3://Upper"}}`, "/bucket/url"},
		{`{bucket: {url: "file:///data"}}`, "/bucket/url"},
		{`{bucket: {accessKey: AKIA}}`, "/bucket': additional properties 'accessKey'"},
		{`{etcd: {password: secret}}`, "/etcd': additional properties 'password'"},
		{`{routers: {}}`, "'': additional properties 'routers'"},
		{`{router: {replica: 3}}`, "/router': additional properties 'replica'"},
		{`{router: {replicas: "3"}}`, "/router/replicas"},
		{`{router: {replicas: -1}}`, "/router/replicas"},
		{`{router: {resources: {limits: {memory: lots}}}}`, "/router/resources/limits/memory"},
		{`{router: {resources: {limits: {gpu: 1}}}}`, "/router/resources/limits': additional properties 'gpu'"},
		{`{router: {service: {type: Loadbalancer}}}`, "/router/service/type"},
		{`{router: {autoscaling: {targetCPUPercent: 0}}}`, "/router/autoscaling/targetCPUPercent"},
		{`{router: {ingress: {grpc: {enabled: true}}}}`, "/router/ingress/grpc/host"},
		{`{router: {extraEnv: [{value: x}]}}`, "/router/extraEnv/0"},
		{`{router: {extraVolumes: [{name: host, hostPath: {path: /}}]}}`, "/router/extraVolumes/0': additional properties 'hostPath'"},
		{`{router: {tolerations: [{operator: Maybe}]}}`, "/router/tolerations/0/operator"},
		{`{router: {podLabels: {app.kubernetes.io/name: other}}}`, "/router/podLabels"},
		{`{commonLabels: {a: "not a label"}}`, "/commonLabels/a"},
		{`{searcher: {cache: {size: 50GB}}}`, "/searcher/cache/size"},
		{`{searcher: {cache: {type: hostPath}}}`, "/searcher/cache/type"},
		{`{indexer: {workers: 0}}`, "/indexer/workers"},
		{`{indexer: {keda: {enabled: true}}}`, "/indexer/keda/natsMonitor"},
		{`{access: {mode: "off"}}`, "/access/mode"},
		{`{source: {schemes: [ext]}}`, "/source/schemes/0"},
		{`{source: {credentials: [{host: a.b, existingSecret: c}]}}`, "/source/credentials/0': missing property 'kind'"},
		{`{source: {credentials: [{host: a.b, kind: https, password: c}]}}`, "/source/credentials/0"},
		{`{sources: [{name: a}]}`, "/sources/0': missing property 'kind'"},
		{`{sources: [{name: a, kind: github, token: ghp_x}]}`, "/sources/0/token"},
		{`{sources: [{name: a, kind: github, token: {env: HOME}}]}`, "/sources/0/token/env"},
		{`{sources: [{name: a, kind: git, url: "https://user:password@git.example.com/a"}]}`, "/sources/0/url"},
		{`{sources: [{name: a, kind: svn}]}`, "/sources/0/kind"},
		{`{sources: [{name: a, kind: github, every: 15}]}`, "/sources/0/every"},
		{`{sources: [{name: a, kind: github, ranks: [{match: x, rank: 101}]}]}`, "/sources/0/ranks/0/rank"},
		{`{indexer: {pollPerSecond: 0}}`, "/indexer/pollPerSecond"},
		{`{telemetry: {traceSampling: 2}}`, "/telemetry/traceSampling"},
		{`{replication: 0}`, "/replication"},
		{`{maxQuerySeconds: 1m}`, "/maxQuerySeconds"},
		{`{networkPolicy: {clients: [{}]}}`, "/networkPolicy/clients/0"},
		{`{networkPolicy: {gitPorts: [0]}}`, "/networkPolicy/gitPorts/0"},
		{`{evaluation: {enabled: "yes"}}`, "/evaluation/enabled"},
		{`{evaluation: {etcdCommand: etcd}}`, "/evaluation/etcdCommand"},
		{`{fullnameOverride: Upper}`, "/fullnameOverride"},
		{`{image: {digests: {router: "md5:1"}}}`, "/image/digests/router"},
		{`{router: {route: {grpc: {enabled: true, hostnames: [a.example.com]}}}}`, "/router/route/grpc/parentRefs"},
		{`{router: {callerShare: 2}}`, "/router/callerShare"},
		{`{router: {callerProcessors: -1}}`, "/router/callerProcessors"},
		{`{router: {reposPerMinute: 0}}`, "/router/reposPerMinute"},
		{`{searcher: {sidecars: [{name: a}]}}`, "/searcher/sidecars/0': missing property 'image'"},
		{`{image: {pullPolicy: Sometimes}}`, "/image/pullPolicy"},
		{`{router: {probes: {alive: {periodSeconds: 1}}}}`, "/router/probes': additional properties 'alive'"},
		{`{searcher: {probes: {liveness: {periodSeconds: 0}}}}`, "/searcher/probes/liveness/periodSeconds"},
		{`{indexer: {probes: {readiness: {exec: {command: [a]}}}}}`, "/indexer/probes/readiness': additional properties 'exec'"},
		{`{router: {dnsConfig: {servers: [192.0.2.1]}}}`, "/router/dnsConfig': additional properties 'servers'"},
		{`{indexer: {hostAliases: [{ip: 192.0.2.1}]}}`, "/indexer/hostAliases/0': missing property 'hostnames'"},
		{`{router: {extraArgs: "--max-queries=1"}}`, "/router/extraArgs"},
		{`{canary: {enabled: "no"}}`, "/canary/enabled"},
		{`{canary: {token: trawl_x}}`, "/canary': additional properties 'token'"},
		{`{canary: {tokenSecret: "Not a name"}}`, "/canary/tokenSecret"},
		{`{router: {runtimeClassName: "not a name"}}`, "/router/runtimeClassName"},
	} {
		values := map[string]any{}
		if err := yaml.UnmarshalStrict([]byte(tt.values), &values); err != nil {
			t.Fatal(err)
		}
		if _, err := render(usual, values); err == nil || !strings.Contains(err.Error(), tt.path) {
			t.Errorf("%s: %v; want the path %s", tt.values, err, tt.path)
		}
	}
}

// TestSchemaIsClosed: every object of the schema lists its properties, except objects
// that Kubernetes defines.
func TestSchemaIsClosed(t *testing.T) {
	var schema map[string]any
	content, err := os.ReadFile(filepath.Join(chartDir, "values.schema.json"))
	if err == nil {
		err = json.Unmarshal(content, &schema)
	}
	if err != nil {
		t.Fatal(err)
	}
	closed := 0
	var walk func(path string, at any)
	walk = func(path string, at any) {
		switch is := at.(type) {
		case map[string]any:
			if is["properties"] != nil && is["type"] == "object" {
				closed++
				if is["additionalProperties"] != false {
					t.Errorf("%s takes any property", path)
				}
			}
			for key, value := range is {
				walk(path+"/"+key, value)
			}
		case []any:
			for i, value := range is {
				walk(fmt.Sprintf("%s/%d", path, i), value)
			}
		}
	}
	walk("", schema)
	if closed < 30 {
		t.Errorf("only %d objects were looked at", closed)
	}
}

// TestSchemaKnowsTheValues: each value of values.yaml has its own place in the schema,
// and each of these has a default.
func TestSchemaKnowsTheValues(t *testing.T) {
	var schema, values map[string]any
	for name, into := range map[string]*map[string]any{"values.schema.json": &schema, "values.yaml": &values} {
		content, err := os.ReadFile(filepath.Join(chartDir, name))
		if err == nil {
			err = yaml.Unmarshal(content, into)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	definitions := schema["definitions"].(map[string]any)
	var walk func(path string, schema, values map[string]any)
	walk = func(path string, schema, values map[string]any) {
		if ref, ok := schema["$ref"].(string); ok {
			schema = definitions[strings.TrimPrefix(ref, "#/definitions/")].(map[string]any)
		}
		properties, _ := schema["properties"].(map[string]any)
		for key := range properties {
			if _, ok := values[key]; !ok && !strings.HasPrefix(path, "/router/resources") && !strings.Contains(path, "affinity") && !strings.HasSuffix(path, "/dnsConfig") && !strings.Contains(path, "/resources") {
				t.Errorf("%s/%s is in the schema only", path, key)
			}
		}
		for key, value := range values {
			inner, ok := properties[key].(map[string]any)
			if !ok && properties != nil {
				t.Errorf("%s/%s is in values.yaml only", path, key)
			}
			if group, ok := value.(map[string]any); ok && inner != nil {
				walk(path+"/"+key, inner, group)
			}
		}
	}
	walk("", schema, values)
}
