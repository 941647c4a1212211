package charttest

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	netv1 "k8s.io/api/networking/v1"
	"sigs.k8s.io/yaml"
)

// flows are connections between pods, such as "router→searcher:7440". Peers outside
// of the release are written as in the policy.
type flows struct{ out, in map[string]bool }

func (r rendered) flows(t *testing.T) (f flows) {
	t.Helper()
	f = flows{out: map[string]bool{}, in: map[string]bool{}}
	for _, o := range r.objects {
		p, ok := o.typed.(*netv1.NetworkPolicy)
		if !ok {
			continue
		}
		for _, own := range r.selected(t, p.Spec.PodSelector.MatchLabels) {
			for _, rule := range p.Spec.Egress {
				for _, to := range r.peers(t, rule.To) {
					for _, port := range rule.Ports {
						f.out[fmt.Sprintf("%s→%s:%d%s", own, to, port.Port.IntVal, suffix(port))] = true
					}
				}
			}
			for _, rule := range p.Spec.Ingress {
				for _, from := range r.peers(t, rule.From) {
					for _, port := range rule.Ports {
						f.in[fmt.Sprintf("%s→%s:%d%s", from, own, port.Port.IntVal, suffix(port))] = true
					}
				}
			}
		}
	}
	return f
}

func suffix(p netv1.NetworkPolicyPort) string { return strings.TrimPrefix(string(*p.Protocol), "TCP") }

func (r rendered) peers(t *testing.T, peers []netv1.NetworkPolicyPeer) (names []string) {
	t.Helper()
	if len(peers) == 0 {
		return []string{"anywhere"}
	}
	for _, p := range peers {
		if p.PodSelector != nil && p.NamespaceSelector == nil {
			names = append(names, r.selected(t, p.PodSelector.MatchLabels)...)
			continue
		}
		text, err := yaml.Marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, strings.Join(strings.Fields(string(text)), " "))
	}
	return names
}

const (
	everyPod   = "namespaceSelector: {}"
	prometheus = "namespaceSelector: matchLabels: kubernetes.io/metadata.name: monitoring"
	data       = "namespaceSelector: matchLabels: kubernetes.io/metadata.name: data"
	gitHosts   = "ipBlock: cidr: 10.0.0.0/8 except: - 10.1.0.0/16"
)

// within are the connections inside of every release.
var within = []string{
	"router→searcher:7440", "selftest→router:7430", "selftest→router:7431", "selftest→searcher:7441", "selftest→indexer:7451",
	"canary→router:7430", "canary→router:7431", "indexer→canary:7461",
}

// toEvaluation are the connections to the servers of an evaluation.
var toEvaluation = []string{
	"router→etcd:2379", "searcher→etcd:2379", "indexer→etcd:2379", "selftest→etcd:2379",
	"router→nats:4222", "indexer→nats:4222", "searcher→s3:7070", "indexer→s3:7070",
}

// fromOutside are the connections of callers.
var fromOutside = []string{
	everyPod + "→router:7430", everyPod + "→router:7431",
	prometheus + "→router:7431", prometheus + "→searcher:7441", prometheus + "→indexer:7451",
	prometheus + "→canary:7461",
}

func names() (ways []string) {
	for _, pod := range []string{"router", "searcher", "indexer", "selftest", "canary"} {
		ways = append(ways, pod+"→anywhere:53", pod+"→anywhere:53UDP")
	}
	return ways
}

func ways(lists ...[]string) map[string]bool {
	set := map[string]bool{}
	for _, way := range slices.Concat(lists...) {
		set[way] = true
	}
	return set
}

// TestNetworkPolicies: pods get what they need, and nothing else.
func TestNetworkPolicies(t *testing.T) {
	git := []string{"indexer→anywhere:443", "indexer→anywhere:22"}
	token := []string{"canary→etcd:2379"} // which makes it
	for set, want := range map[string]flows{
		"evaluation": {out: ways(within, toEvaluation, names(), git, token), in: ways(within, toEvaluation, fromOutside, token)},
		"evaluation-all": {
			out: ways(within, toEvaluation, names(), git),
			in:  ways(within, toEvaluation, fromOutside, []string{everyPod + "→nats:8222"}),
		},
		"external": {
			out: ways(within, names(), []string{
				"router→" + data + ":2379", "router→" + data + ":23790", "searcher→" + data + ":2379", "searcher→" + data + ":23790",
				"indexer→" + data + ":2379", "indexer→" + data + ":23790", "selftest→" + data + ":2379", "selftest→" + data + ":23790",
				"router→" + data + ":4222", "router→" + data + ":4223", "indexer→" + data + ":4222", "indexer→" + data + ":4223",
				"searcher→" + data + ":9000", "indexer→" + data + ":9000", "indexer→" + gitHosts + ":443", "indexer→" + gitHosts + ":2222",
			}),
			in: ways(within, fromOutside),
		},
		"tls": {
			out: ways(within, names(), git, []string{
				"router→anywhere:2379", "searcher→anywhere:2379", "indexer→anywhere:2379", "selftest→anywhere:2379", "canary→anywhere:2379",
				"router→anywhere:4222", "indexer→anywhere:4222", "searcher→anywhere:443",
				"router→anywhere:4317", "searcher→anywhere:4317", "indexer→anywhere:4317", "canary→anywhere:4317",
			}),
			in: ways(within, fromOutside),
		},
	} {
		for _, release := range []string{usual, longRelease} {
			got := renderedAs(t, set, release).flows(t)
			differ(t, set+": out", got.out, want.out)
			differ(t, set+": in", got.in, want.in)
		}
	}
}

func differ(t *testing.T, what string, got, want map[string]bool) {
	t.Helper()
	for _, way := range slices.Sorted(maps.Keys(got)) {
		if !want[way] {
			t.Errorf("%s: %s is allowed, and not needed", what, way)
		}
	}
	for _, way := range slices.Sorted(maps.Keys(want)) {
		if !got[way] {
			t.Errorf("%s: %s is needed, and not allowed", what, way)
		}
	}
}

// TestEveryPodIsDenied: what no policy allows is denied, for every pod and in both
// directions; and every egress inside of the release has a matching ingress.
func TestEveryPodIsDenied(t *testing.T) {
	each(t, func(t *testing.T, r rendered) {
		if policy, ok := r.values["networkPolicy"].(map[string]any); ok && policy["enabled"] == false {
			for _, o := range r.objects {
				if o.kind == "NetworkPolicy" {
					t.Errorf("%s, which was switched off", o)
				}
			}
			return
		}
		denied := map[string]bool{}
		for _, o := range r.objects {
			p, ok := o.typed.(*netv1.NetworkPolicy)
			if ok && len(p.Spec.PolicyTypes) == 2 && p.Spec.Ingress == nil && p.Spec.Egress == nil {
				for _, c := range r.selected(t, p.Spec.PodSelector.MatchLabels) {
					denied[c] = true
				}
			}
		}
		f := r.flows(t)
		for _, p := range r.pods() {
			if !denied[p.component()] {
				t.Errorf("the pods of %s are not denied anything", p)
			}
			for way := range f.out {
				_, to, _ := strings.Cut(way, "→")
				if strings.HasPrefix(to, p.component()+":") && !f.in[way] {
					t.Errorf("%s may be sent, and not taken", way)
				}
			}
		}
	})
}

// TestPodIdentityIsReached: pods that have their credentials from the cloud reach the
// agent that hands them out on EKS, and those that have them from a Secret do not.
func TestPodIdentityIsReached(t *testing.T) {
	for set, wanted := range map[string]bool{"ha": true, "external": false, "evaluation": false} {
		f := renderedAs(t, set, usual).flows(t)
		for _, role := range []string{"router", "searcher", "indexer"} {
			for _, address := range []string{"169.254.170.23/32", "fd00:ec2::23/128"} {
				way := fmt.Sprintf("%s→ipBlock: cidr: %s:80", role, address)
				if got := f.out[way]; got != (wanted && role != "router") {
					t.Errorf("%s: %s is allowed: %v", set, way, got)
				}
			}
		}
	}
}
