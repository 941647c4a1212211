package charttest

import (
	"slices"
	"testing"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
)

func (r rendered) has(kind, name string) bool {
	return slices.ContainsFunc(r.objects, func(o object) bool { return o.kind == kind && o.name == name })
}

// TestPodsReferToWhatIsThere: the chart creates the accounts and Secrets of its own that pods name.
func TestPodsReferToWhatIsThere(t *testing.T) {
	others := []string{"nats-user", "s3-keys", "git-https", "git-ssh", "etcd-user", "etcd-router-user", "etcd-admin"}
	each(t, func(t *testing.T, r rendered) {
		for _, p := range r.pods() {
			accounts := []string{"theirs", "default"} // of the values customized
			if !r.has("ServiceAccount", p.spec.ServiceAccountName) && !(r.set == "customized" && slices.Contains(accounts, p.spec.ServiceAccountName)) {
				t.Errorf("%s runs as %s", p, p.spec.ServiceAccountName)
			}
			for _, c := range p.containers() {
				for _, e := range c.Env {
					if e.ValueFrom == nil || e.ValueFrom.SecretKeyRef == nil {
						continue
					}
					if s := e.ValueFrom.SecretKeyRef.Name; !slices.Contains(others, s) && !r.has("Secret", s) {
						t.Errorf("%s wants the Secret %s", p, s)
					}
				}
			}
		}
		for _, o := range r.objects {
			if a, ok := o.typed.(*corev1.ServiceAccount); ok && !is(a.AutomountServiceAccountToken, false) {
				t.Errorf("%s gives its token to pods", o)
			}
		}
	})
}

// TestScalersHitWorkloads: each scaler names a workload that leaves the number of
// its pods open.
func TestScalersHitWorkloads(t *testing.T) {
	each(t, func(t *testing.T, r rendered) {
		scaled := map[string]bool{}
		for _, o := range r.objects {
			switch o.kind {
			case "HorizontalPodAutoscaler":
				to := o.typed.(*autoscalingv2.HorizontalPodAutoscaler).Spec.ScaleTargetRef
				scaled[to.Kind+"/"+to.Name] = true
			case "ScaledObject":
				to, _, _ := unstructured.NestedString(o.tree.Object, "spec", "scaleTargetRef", "name")
				scaled["Deployment/"+to] = true
			}
		}
		for _, p := range r.pods() {
			if scaled[p.String()] && p.replicas != nil {
				t.Errorf("%s is scaled, and has %d pods", p, *p.replicas)
			}
			if !scaled[p.String()] && p.replicas == nil && p.kind != "Pod" {
				t.Errorf("%s has no number of pods", p)
			}
			delete(scaled, p.String())
		}
		if len(scaled) > 0 {
			t.Errorf("there is nothing to scale: %v", scaled)
		}
	})
}

// TestScalersKeepTheReplicas: scaling starts at the former number of pods,
// unless the values name another minimum.
func TestScalersKeepTheReplicas(t *testing.T) {
	for least, want := range map[any]int32{nil: 6, 3: 3} {
		values := valuesOf(t, "external")
		for _, role := range []string{"router", "searcher"} {
			values[role] = map[string]any{"replicas": 6, "autoscaling": map[string]any{"enabled": true, "minReplicas": least}}
		}
		files, err := render(usual, values)
		if err != nil {
			t.Fatal(err)
		}
		found := 0
		for _, o := range objects(t, files) {
			if h, ok := o.typed.(*autoscalingv2.HorizontalPodAutoscaler); ok {
				found++
				if !is(h.Spec.MinReplicas, want) {
					t.Errorf("minReplicas %v: %s scales as %+v, want at least %d", least, o, h.Spec, want)
				}
			}
		}
		if found != 2 {
			t.Errorf("%d autoscalers", found)
		}
	}
}

// TestMonitorsFindEveryRole: monitors find each role by one Service, at the port of metrics.
func TestMonitorsFindEveryRole(t *testing.T) {
	r := renderedAs(t, "ha", usual)
	var found []string
	for _, o := range r.objects {
		if o.kind != "ServiceMonitor" {
			continue
		}
		match, _, err := unstructured.NestedStringMap(o.tree.Object, "spec", "selector", "matchLabels")
		if err != nil {
			t.Fatal(err)
		}
		for _, other := range r.objects {
			s, ok := other.typed.(*corev1.Service)
			if ok && labels.SelectorFromSet(match).Matches(labels.Set(s.Labels)) {
				found = append(found, s.Labels["app.kubernetes.io/component"])
				if !slices.ContainsFunc(s.Spec.Ports, func(p corev1.ServicePort) bool { return p.Name == "http" }) {
					t.Errorf("%s has no port http", other)
				}
			}
		}
	}
	slices.Sort(found)
	if !slices.Equal(found, []string{"canary", "indexer", "router", "searcher"}) {
		t.Errorf("they find %v", found)
	}
}
