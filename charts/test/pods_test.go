package charttest

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// podOf is the pod that an object creates, or is.
type podOf struct {
	object

	labels   map[string]string
	selector *metav1.LabelSelector // nil for a pod by itself
	spec     corev1.PodSpec
	claims   []corev1.PersistentVolumeClaim
	replicas *int32
}

// component returns the component of Trawl that a pod belongs to.
func (p podOf) component() string { return p.labels["app.kubernetes.io/component"] }

// containers are all containers of a pod.
func (p podOf) containers() []corev1.Container {
	return slices.Concat(p.spec.InitContainers, p.spec.Containers)
}

func (r rendered) pods() (pods []podOf) {
	for _, o := range r.objects {
		switch is := o.typed.(type) {
		case *appsv1.Deployment:
			pods = append(pods, podOf{object: o, labels: is.Spec.Template.Labels, selector: is.Spec.Selector, spec: is.Spec.Template.Spec, replicas: is.Spec.Replicas})
		case *appsv1.StatefulSet:
			pods = append(pods, podOf{
				object: o, labels: is.Spec.Template.Labels, selector: is.Spec.Selector, spec: is.Spec.Template.Spec,
				claims: is.Spec.VolumeClaimTemplates, replicas: is.Spec.Replicas,
			})
		case *corev1.Pod:
			pods = append(pods, podOf{object: o, labels: is.Labels, spec: is.Spec})
		}
	}
	return pods
}

// TestPodsAreRestricted: pods meet the restricted Pod Security Standard, and more.
func TestPodsAreRestricted(t *testing.T) {
	each(t, func(t *testing.T, r rendered) {
		for _, p := range r.pods() {
			s := p.spec.SecurityContext
			if s == nil || !is(s.RunAsNonRoot, true) || r.set != "customized" && !is(s.RunAsUser, int64(65532)) || s.SeccompProfile == nil || s.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault {
				t.Errorf("%s: security of the pod: %+v", p, s)
			}
			if p.spec.HostNetwork || p.spec.HostPID || p.spec.HostIPC || !is(p.spec.AutomountServiceAccountToken, false) || !is(p.spec.EnableServiceLinks, false) {
				t.Errorf("%s: the pod reaches what is not its own", p)
			}
			if p.spec.ServiceAccountName == "" {
				t.Errorf("%s has no account", p)
			}
			for _, c := range p.containers() {
				s := c.SecurityContext
				if s == nil || !is(s.AllowPrivilegeEscalation, false) || !is(s.ReadOnlyRootFilesystem, true) || is(s.Privileged, true) ||
					s.Capabilities == nil || !slices.Equal(s.Capabilities.Drop, []corev1.Capability{"ALL"}) || len(s.Capabilities.Add) > 0 {
					t.Errorf("%s: security of the container: %+v", p, s)
				}
			}
		}
	})
}

func is[T comparable](got *T, want T) bool { return got != nil && *got == want }

// TestContainersHaveResourcesAndProbes: containers have resources and three different
// probes; the self-test ends by itself and has no probes.
func TestContainersHaveResourcesAndProbes(t *testing.T) {
	each(t, func(t *testing.T, r rendered) {
		for _, p := range r.pods() {
			c := p.spec.Containers[0]
			for _, amount := range []corev1.ResourceList{c.Resources.Requests, c.Resources.Limits} {
				if amount.Memory().IsZero() {
					t.Errorf("%s: resources %+v", p, c.Resources)
				}
			}
			if c.Resources.Requests.Cpu().IsZero() || c.Resources.Requests.Memory().Cmp(*c.Resources.Limits.Memory()) > 0 {
				t.Errorf("%s: resources %+v", p, c.Resources)
			}
			if p.kind == "Pod" {
				continue
			}
			start, ready, live := c.StartupProbe, c.ReadinessProbe, c.LivenessProbe
			if start == nil || ready == nil || live == nil || ready.ProbeHandler.String() == live.ProbeHandler.String() || start.FailureThreshold <= live.FailureThreshold {
				t.Errorf("%s: probes %v, %v, %v", p, start, ready, live)
			}
		}
	})
}

// TestMemoryIsCollectedInTime: Go's memory limit is below the container's.
func TestMemoryIsCollectedInTime(t *testing.T) {
	each(t, func(t *testing.T, r rendered) {
		found := 0
		for _, p := range r.pods() {
			c := p.spec.Containers[0]
			for _, e := range c.Env {
				if e.Name != "GOMEMLIMIT" {
					continue
				}
				found++
				mib, err := strconv.ParseInt(strings.TrimSuffix(e.Value, "MiB"), 10, 64)
				if limit := c.Resources.Limits.Memory().Value(); err != nil || mib<<20 < limit*3/4 || mib<<20 > limit*9/10 {
					t.Errorf("%s: %s of %d bytes, %v", p, e.Value, limit, err)
				}
			}
		}
		if found != r.roles() {
			t.Errorf("%d roles know of a limit", found)
		}
	})
}

// TestPodsEndAfterTheirCalls: a pod has longer than it takes to drain, and it
// drains longer than any query takes.
func TestPodsEndAfterTheirCalls(t *testing.T) {
	eachUsual(t, func(t *testing.T, r rendered) {
		for _, p := range r.pods() {
			role := p.component()
			if role != "router" && role != "searcher" && role != "indexer" && role != "canary" {
				continue
			}
			effective := r.effective(t, p)
			delay, drain := seconds(t, effective["drain-delay"]), seconds(t, effective["drain-timeout"])
			if role == "router" && drain <= seconds(t, effective["max-timeout"]) {
				t.Errorf("%s: queries take up to %v, and are cut off after %v s", p, effective["max-timeout"], drain)
			}
			if grace := p.spec.TerminationGracePeriodSeconds; grace == nil || float64(*grace) <= delay+drain {
				t.Errorf("%s: ends after %v s, and drains %v s and %v s", p, grace, delay, drain)
			}
		}
	})
}

// TestPodsSpread: pods of a role avoid each other, unless the values say otherwise.
func TestPodsSpread(t *testing.T) {
	each(t, func(t *testing.T, r rendered) {
		for _, p := range r.pods() {
			if p.kind == "Pod" || slices.Contains([]string{"etcd", "nats", "s3"}, p.component()) {
				continue
			}
			if a := p.spec.Affinity; a == nil || a.PodAntiAffinity == nil && a.NodeAffinity == nil {
				t.Errorf("%s: affinity %+v", p, a)
			}
			spread := p.spec.TopologySpreadConstraints
			if len(spread) == 0 || !matches(t, spread[0].LabelSelector, p.labels) {
				t.Errorf("%s: spread by %+v", p, spread)
			}
		}
	})
}

// TestMountsHaveVolumes: each mount has exactly one volume, and each volume of the
// chart is mounted.
func TestMountsHaveVolumes(t *testing.T) {
	each(t, func(t *testing.T, r rendered) {
		for _, p := range r.pods() {
			var volumes []string
			for _, v := range p.spec.Volumes {
				volumes = append(volumes, v.Name)
				r.needVolume(t, p, v)
			}
			for _, c := range p.claims {
				volumes = append(volumes, c.Name)
			}
			var mounted []string
			for _, c := range p.containers() {
				for _, m := range c.VolumeMounts {
					mounted = append(mounted, m.Name)
				}
			}
			slices.Sort(volumes)
			slices.Sort(mounted)
			if !slices.Equal(volumes, slices.Compact(mounted)) {
				t.Errorf("%s: volumes %v, mounted %v", p, volumes, mounted)
			}
		}
	})
}

// needVolume checks that the chart's own ConfigMaps and Secrets of a volume exist, with their keys.
func (r rendered) needVolume(t *testing.T, p podOf, v corev1.Volume) {
	t.Helper()
	if v.ConfigMap == nil || strings.HasPrefix(v.ConfigMap.Name, "authorities") {
		return
	}
	for _, o := range r.objects {
		m, ok := o.typed.(*corev1.ConfigMap)
		if !ok || m.Name != v.ConfigMap.Name {
			continue
		}
		for _, item := range v.ConfigMap.Items {
			if _, ok := m.BinaryData[item.Key]; !ok {
				t.Errorf("%s: the volume %s wants the key %s, which %s has not", p, v.Name, item.Key, m.Name)
			}
		}
		return
	}
	t.Errorf("%s: the volume %s is of the ConfigMap %s, which the chart does not make", p, v.Name, v.ConfigMap.Name)
}

func seconds(t *testing.T, text any) float64 {
	t.Helper()
	d, err := time.ParseDuration(fmt.Sprint(text))
	if err != nil {
		t.Fatal(err)
	}
	return d.Seconds()
}

// TestDisksAreRequested: pods request the space of a cache on the node's disk, so that
// they are scheduled on a node with that space.
func TestDisksAreRequested(t *testing.T) {
	each(t, func(t *testing.T, r rendered) {
		for _, p := range r.pods() {
			for _, v := range p.spec.Volumes {
				if v.Name != "cache" || v.EmptyDir == nil {
					continue
				}
				if asked := p.spec.Containers[0].Resources.Requests.StorageEphemeral(); asked.Cmp(*v.EmptyDir.SizeLimit) < 0 {
					t.Errorf("%s asks for %s of the node's disk, and may write %s", p, asked, v.EmptyDir.SizeLimit)
				}
			}
		}
	})
}
