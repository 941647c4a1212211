package charttest

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	netv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"
)

func matches(t *testing.T, s *metav1.LabelSelector, set map[string]string) bool {
	t.Helper()
	selector, err := metav1.LabelSelectorAsSelector(s)
	if err != nil {
		t.Fatal(err)
	}
	return !selector.Empty() && selector.Matches(labels.Set(set))
}

// selectorKeys never change, since an upgrade cannot change selectors of pods.
var selectorKeys = []string{"app.kubernetes.io/component", "app.kubernetes.io/instance", "app.kubernetes.io/name"}

// TestSelectorsMatch: selectors of workloads match only their own pods, by
// labels that never change.
func TestSelectorsMatch(t *testing.T) {
	each(t, func(t *testing.T, r rendered) {
		for _, p := range r.pods() {
			if p.selector == nil {
				continue
			}
			if keys := slices.Sorted(maps.Keys(p.selector.MatchLabels)); !slices.Equal(keys, selectorKeys) {
				t.Errorf("%s selects by %v", p, keys)
			}
			for _, other := range r.pods() {
				if own := other.String() == p.String(); matches(t, p.selector, other.labels) != own {
					t.Errorf("%s selects the pods of %s: %v", p, other, !own)
				}
			}
		}
	})
}

// selected are the components whose pods a map of labels selects.
func (r rendered) selected(t *testing.T, match map[string]string) (components []string) {
	t.Helper()
	for _, p := range r.pods() {
		if matches(t, &metav1.LabelSelector{MatchLabels: match}, p.labels) {
			components = append(components, p.component())
		}
	}
	return components
}

// TestServicesHitPorts: every port has a name and exists in the pods.
func TestServicesHitPorts(t *testing.T) {
	each(t, func(t *testing.T, r rendered) {
		for _, o := range r.objects {
			s, ok := o.typed.(*corev1.Service)
			if !ok {
				continue
			}
			if found := r.selected(t, s.Spec.Selector); len(found) != 1 {
				t.Errorf("%s selects the pods of %v", o, found)
			}
			for _, port := range s.Spec.Ports {
				if port.Name == "" || !r.hasPort(t, s.Spec.Selector, port.TargetPort.StrVal, port.Port) {
					t.Errorf("%s: port %+v is none of the pods'", o, port)
				}
			}
		}
	})
}

func (r rendered) hasPort(t *testing.T, match map[string]string, name string, number int32) bool {
	t.Helper()
	for _, p := range r.pods() {
		if !matches(t, &metav1.LabelSelector{MatchLabels: match}, p.labels) {
			continue
		}
		for _, c := range p.spec.Containers[0].Ports {
			if c.Name == name && c.ContainerPort == number {
				return true
			}
		}
	}
	return false
}

// TestIngressesHitServices: the Service and its port exist.
func TestIngressesHitServices(t *testing.T) {
	each(t, func(t *testing.T, r rendered) {
		for _, o := range r.objects {
			i, ok := o.typed.(*netv1.Ingress)
			if !ok {
				continue
			}
			to := i.Spec.Rules[0].HTTP.Paths[0].Backend.Service
			if !slices.ContainsFunc(r.objects, func(o object) bool {
				s, ok := o.typed.(*corev1.Service)
				return ok && s.Name == to.Name && slices.ContainsFunc(s.Spec.Ports, func(p corev1.ServicePort) bool { return p.Name == to.Port.Name })
			}) {
				t.Errorf("%s leads to %+v", o, to)
			}
		}
	})
}

// TestBudgetsMatch: a disruption budget selects one role with several pods.
func TestBudgetsMatch(t *testing.T) {
	each(t, func(t *testing.T, r rendered) {
		budgets := map[string]bool{}
		for _, o := range r.objects {
			b, ok := o.typed.(*policyv1.PodDisruptionBudget)
			if !ok {
				continue
			}
			found := r.selected(t, b.Spec.Selector.MatchLabels)
			if len(found) != 1 {
				t.Fatalf("%s selects %v", o, found)
			}
			budgets[found[0]] = true
		}
		for _, p := range r.pods() {
			if p.replicas != nil && *p.replicas > 1 != budgets[p.component()] {
				t.Errorf("%s: %d pods, a budget: %v", p, *p.replicas, budgets[p.component()])
			}
		}
	})
}

// TestNamesAreValid: no two objects of a kind share a name, and all names and
// labels fit, including those that Kubernetes derives from them.
func TestNamesAreValid(t *testing.T) {
	each(t, func(t *testing.T, r rendered) {
		seen := map[string]bool{}
		for _, o := range r.objects {
			if seen[o.String()] {
				t.Errorf("%s is there twice", o)
			}
			seen[o.String()] = true
			problems := validation.IsDNS1035Label(o.name)
			if limit := map[string]int{"StatefulSet": 52, "Deployment": 52}[o.kind]; limit > 0 && len(o.name) > limit {
				problems = append(problems, fmt.Sprintf("longer than %d", limit))
			}
			if o.tree.GetNamespace() != "search" {
				problems = append(problems, "is in the namespace "+o.tree.GetNamespace())
			}
			problems = append(problems, labelProblems(o.tree.GetLabels())...)
			if len(problems) > 0 {
				t.Errorf("%s: %s", o, strings.Join(problems, "; "))
			}
		}
		for _, p := range r.pods() {
			if problems := labelProblems(p.labels); len(problems) > 0 {
				t.Errorf("pods of %s: %s", p, strings.Join(problems, "; "))
			}
		}
	})
}

func labelProblems(set map[string]string) (problems []string) {
	for key, value := range set {
		problems = append(problems, validation.IsQualifiedName(key)...)
		problems = append(problems, validation.IsValidLabelValue(value)...)
	}
	return problems
}

// TestReleasesDoNotShareNames: two long names that begin alike become two names.
func TestReleasesDoNotShareNames(t *testing.T) {
	names := map[string]bool{}
	for _, release := range []string{longRelease, longRelease[:52] + "x", "1st", "a.b", "trawl", "my-trawl"} {
		files, err := render(release, valuesOf(t, "evaluation"))
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range objects(t, files) {
			if names[o.String()] {
				t.Errorf("%s is of two releases", o)
			}
			names[o.String()] = true
			if problems := validation.IsDNS1035Label(o.name); len(problems) > 0 {
				t.Errorf("release %s: %s: %v", release, o, problems)
			}
		}
	}
}
