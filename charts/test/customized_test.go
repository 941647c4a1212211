package charttest

import (
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// TestPodsTakeWhatIsCustomized: each role has the containers, environment, account and image of its
// values, and no user if the values leave it open.
func TestPodsTakeWhatIsCustomized(t *testing.T) {
	accounts := map[string]string{"router": "theirs", "searcher": "searchers", "indexer": "default"}
	r := renderedAs(t, "customized", usual)
	roles := 0
	for _, p := range r.pods() {
		s := p.spec.SecurityContext
		if s.RunAsUser != nil || s.RunAsGroup != nil || s.FSGroup != nil || !slices.Equal(s.SupplementalGroups, []int64{4000}) || !is(s.RunAsNonRoot, true) {
			t.Errorf("%s: security of the pod: %+v", p, s)
		}
		account, ok := accounts[p.component()]
		if !ok {
			continue
		}
		roles++
		if p.spec.ServiceAccountName != account {
			t.Errorf("%s runs as %s, want %s", p, p.spec.ServiceAccountName, account)
		}
		names := func(all []corev1.Container) (names []string) {
			for _, c := range all {
				names = append(names, c.Name)
			}
			return names
		}
		if got, want := names(p.spec.Containers), []string{p.component(), "beside"}; !slices.Equal(got, want) {
			t.Errorf("%s has the containers %v, want %v", p, got, want)
		}
		if got := names(p.spec.InitContainers); !slices.Equal(got, []string{"before"}) {
			t.Errorf("%s has the init containers %v", p, got)
		}
		c := p.spec.Containers[0]
		if len(c.EnvFrom) != 1 || c.EnvFrom[0].SecretRef.Name != "environment" {
			t.Errorf("%s has the environment of %v", p, c.EnvFrom)
		}
		if !strings.Contains(c.Image, p.component()+":") || !strings.Contains(c.Image, "@sha256:0123456789abcdef") {
			t.Errorf("%s has the image %s", p, c.Image)
		}
	}
	if roles != 3 {
		t.Errorf("%d roles", roles)
	}
	for name, made := range map[string]bool{"theirs": false, "searchers": true, "default": false, "trawl-router": false, "trawl-searcher": false} {
		if r.has("ServiceAccount", name) != made {
			t.Errorf("the account %s is made: %v", name, !made)
		}
	}
	if !r.has("ConfigMap", "trawl-more") {
		t.Error("extraObjects are not rendered as templates")
	}
}

// TestPodsRunAsCustomized: each role has the runtime class, the DNS, the hosts, the probes and the arguments of
// its values. A probe keeps what the values do not name.
func TestPodsRunAsCustomized(t *testing.T) {
	r := renderedAs(t, "customized", usual)
	settings := map[string]map[string]any{
		"router": {"max-queries": 500.}, "searcher": {"log-level": "warn"}, "indexer": {"log-level": "warn"},
		"canary": {"every": "1m0s"},
	}
	for _, p := range r.pods() {
		want, ok := settings[p.component()]
		if !ok {
			continue
		}
		delete(settings, p.component())
		s, c := p.spec, p.spec.Containers[0]
		if s.RuntimeClassName == nil || *s.RuntimeClassName != "gvisor" {
			t.Errorf("%s: runtime class %v", p, s.RuntimeClassName)
		}
		if d := s.DNSConfig; d == nil || !slices.Equal(d.Searches, []string{"corp.example.com"}) || len(d.Options) != 1 || d.Options[0].Name != "ndots" || *d.Options[0].Value != "2" {
			t.Errorf("%s: DNS %v", p, d)
		}
		if h := s.HostAliases; len(h) != 1 || h[0].IP != "192.0.2.1" || !slices.Equal(h[0].Hostnames, []string{"git.example.com"}) {
			t.Errorf("%s: hosts %v", p, h)
		}
		if l := c.LivenessProbe; l.PeriodSeconds != 30 || l.TimeoutSeconds != 5 || l.FailureThreshold != 6 || l.HTTPGet == nil {
			t.Errorf("%s: liveness %v", p, l)
		}
		if d := c.ReadinessProbe; d.PeriodSeconds != 5 || d.TimeoutSeconds != 3 || d.FailureThreshold != 2 {
			t.Errorf("%s: readiness %v", p, d)
		}
		taken := r.effective(t, p)
		for name, value := range want {
			if taken[name] != value {
				t.Errorf("%s: %s is %v, want %v", p, name, taken[name], value)
			}
		}
	}
	if len(settings) > 0 {
		t.Errorf("no pods of %v", settings)
	}
}

// TestCallersReachTheirZone: the Service of the routers prefers those in the zone of the caller.
func TestCallersReachTheirZone(t *testing.T) {
	eachUsual(t, func(t *testing.T, r rendered) {
		for _, o := range r.objects {
			if s, ok := o.typed.(*corev1.Service); ok && s.Name == "trawl-router" && !is(s.Spec.TrafficDistribution, corev1.ServiceTrafficDistributionPreferClose) {
				t.Errorf("%s: traffic %v", o, s.Spec.TrafficDistribution)
			}
		}
	})
}

// TestUpdateStrategies: pods are replaced as the values say.
func TestUpdateStrategies(t *testing.T) {
	for _, o := range renderedAs(t, "customized", usual).objects {
		switch is := o.typed.(type) {
		case *appsv1.Deployment:
			s := is.Spec.Strategy
			if o.name == "trawl-indexer" && s.Type != appsv1.RecreateDeploymentStrategyType ||
				o.name == "trawl-router" && (s.RollingUpdate.MaxSurge.IntVal != 2 || s.RollingUpdate.MaxUnavailable.IntVal != 0) {
				t.Errorf("%s: %+v", o, s)
			}
		case *appsv1.StatefulSet:
			if s := is.Spec.UpdateStrategy; s.RollingUpdate == nil || *s.RollingUpdate.Partition != 1 {
				t.Errorf("%s: %+v", o, s)
			}
		}
	}
}

// TestRoutesHitServices: a route of the Gateway API leads to the port of its protocol, from the
// Gateways and for the names of the values.
func TestRoutesHitServices(t *testing.T) {
	r := renderedAs(t, "customized", usual)
	want := map[string]float64{"GRPCRoute/trawl-router-grpc": 7430, "HTTPRoute/trawl-router-http": 7431}
	for _, o := range r.objects {
		port, ok := want[o.String()]
		if !ok {
			continue
		}
		delete(want, o.String())
		rules, _, _ := unstructured.NestedSlice(o.tree.Object, "spec", "rules")
		parents, _, _ := unstructured.NestedSlice(o.tree.Object, "spec", "parentRefs")
		hosts, _, _ := unstructured.NestedStringSlice(o.tree.Object, "spec", "hostnames")
		if len(rules) != 1 || len(parents) != 1 || len(hosts) != 1 {
			t.Fatalf("%s: %v", o, o.tree.Object)
		}
		to := rules[0].(map[string]any)["backendRefs"].([]any)[0].(map[string]any)
		if to["name"] != "trawl-router" || to["port"] != port || !r.has("Service", "trawl-router") {
			t.Errorf("%s leads to %v, want the port %v", o, to, port)
		}
		if at(parents[0].(map[string]any), "name") != "edge" {
			t.Errorf("%s belongs to %v", o, parents)
		}
	}
	if len(want) > 0 {
		t.Errorf("missing: %v", want)
	}
}

// TestRelabelings: all ServiceMonitors have the relabelings of the values.
func TestRelabelings(t *testing.T) {
	found := 0
	for _, o := range renderedAs(t, "customized", usual).objects {
		if o.kind != "ServiceMonitor" {
			continue
		}
		found++
		endpoints, _, err := unstructured.NestedSlice(o.tree.Object, "spec", "endpoints")
		if err != nil || len(endpoints) != 1 {
			t.Fatalf("%s: %v, %v", o, endpoints, err)
		}
		for key, action := range map[string]string{"relabelings": "labeldrop", "metricRelabelings": "drop"} {
			rules, _, _ := unstructured.NestedSlice(endpoints[0].(map[string]any), key)
			if len(rules) != 1 || at(rules[0].(map[string]any), "action") != action {
				t.Errorf("%s: %s are %v", o, key, rules)
			}
		}
	}
	if found != 4 {
		t.Errorf("%d monitors", found)
	}
}

// TestLimitsOfCallers: the routers take the limits of the values.
func TestLimitsOfCallers(t *testing.T) {
	for set, want := range map[string][3]any{"customized": {60., 1., 1.5}, "external": {600., 0.1, 2.}} {
		r := renderedAs(t, set, usual)
		for _, p := range r.pods() {
			if p.component() != "router" {
				continue
			}
			s := r.effective(t, p)
			if got := [3]any{s["repos-per-minute"], s["caller-share"], s["caller-processors"]}; got != want {
				t.Errorf("%s: %v, want %v", set, got, want)
			}
		}
	}
}
