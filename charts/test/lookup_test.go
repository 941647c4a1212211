package charttest

import (
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	"helm.sh/helm/v4/pkg/engine"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/scheme"
)

// cluster is a cluster with some objects.
type cluster struct{ client *fake.FakeDynamicClient }

// GetClientFor implements engine.ClientProvider.
func (c cluster) GetClientFor(version, kind string) (dynamic.NamespaceableResourceInterface, bool, error) {
	resource, _ := meta.UnsafeGuessKindToResource(schema.FromAPIVersionAndKind(version, kind))
	return c.client.Resource(resource), true, nil
}

// upgrade renders an upgrade of a release in a cluster that has some objects.
func upgrade(t *testing.T, values map[string]any, there ...runtime.Object) ([]object, error) {
	t.Helper()
	c, err := loaded()
	if err != nil {
		t.Fatal(err)
	}
	at, err := util.ToRenderValues(c, values, common.ReleaseOptions{Name: usual, Namespace: "search", IsUpgrade: true}, nil)
	if err != nil {
		t.Fatal(err)
	}
	files, err := engine.RenderWithClientProvider(c, at, cluster{fake.NewSimpleDynamicClient(scheme.Scheme, there...)})
	if err != nil {
		return nil, err
	}
	return objects(t, files), nil
}

// TestUpgradeKeepsSecrets: secrets that the chart generated at installation stay.
func TestUpgradeKeepsSecrets(t *testing.T) {
	there := &corev1.Secret{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
		ObjectMeta: metav1.ObjectMeta{Name: "trawl-evaluation", Namespace: "search"},
		Data:       map[string][]byte{"access-key": []byte("access"), "secret-key": []byte("secret")},
	}
	all, err := upgrade(t, valuesOf(t, "evaluation"), there)
	if err != nil {
		t.Fatal(err)
	}
	found := false
	for _, o := range all {
		if s, ok := o.typed.(*corev1.Secret); ok {
			found = true
			if string(s.Data["access-key"]) != "access" || string(s.Data["secret-key"]) != "secret" {
				t.Errorf("%s is now %s", o, s.Data)
			}
		}
	}
	if !found {
		t.Error("there is no Secret")
	}
}

// TestUpgradeKeepsScale: a scaled workload keeps its number of pods. Kubernetes would
// assume one pod if an upgrade no longer named the number, and searchers would lose
// their caches.
func TestUpgradeKeepsScale(t *testing.T) {
	values := valuesOf(t, "ha")
	values["indexer"] = map[string]any{"keda": map[string]any{"enabled": true, "natsMonitor": "nats:8222"}}
	where := func(role string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Name: "trawl-" + role, Namespace: "search"}
	}
	counts := map[string]int32{"router": 7, "searcher": 5, "indexer": 0}
	number := func(role string) *int32 { n := counts[role]; return &n }
	deployment := metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"}
	all, err := upgrade(t, values,
		&appsv1.Deployment{TypeMeta: deployment, ObjectMeta: where("router"), Spec: appsv1.DeploymentSpec{Replicas: number("router")}},
		&appsv1.Deployment{TypeMeta: deployment, ObjectMeta: where("indexer"), Spec: appsv1.DeploymentSpec{Replicas: number("indexer")}},
		searchers("2Ti", number("searcher")),
	)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range (rendered{objects: all}).pods() {
		if want, ok := counts[p.component()]; ok && !is(p.replicas, want) {
			t.Errorf("%s has %v pods, want %d", p, p.replicas, want)
		}
	}
}

// searchers returns the StatefulSet of a release's searchers, with caches of a size.
func searchers(size string, replicas *int32) *appsv1.StatefulSet {
	claim := corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "cache"}}
	claim.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(size)}
	return &appsv1.StatefulSet{
		TypeMeta:   metav1.TypeMeta{APIVersion: "apps/v1", Kind: "StatefulSet"},
		ObjectMeta: metav1.ObjectMeta{Name: "trawl-searcher", Namespace: "search"},
		Spec:       appsv1.StatefulSetSpec{Replicas: replicas, VolumeClaimTemplates: []corev1.PersistentVolumeClaim{claim}},
	}
}

// TestCacheSizeIsFixed: Kubernetes refuses another size for the volumes of a
// StatefulSet; the chart refuses it first and says what to do.
func TestCacheSizeIsFixed(t *testing.T) {
	for size, refused := range map[string]bool{"2Ti": false, "2048Gi": false, "1Ti": true, "50Gi": true} {
		replicas := int32(3)
		_, err := upgrade(t, valuesOf(t, "ha"), searchers(size, &replicas))
		if said := err != nil && strings.Contains(err.Error(), "--cascade=orphan"); said != refused || err != nil && !said {
			t.Errorf("from %s to 2Ti: %v", size, err)
		}
	}
}
