package charttest

import (
	"testing"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	"helm.sh/helm/v4/pkg/engine"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/scheme"
)

// cluster is one that has a Secret.
type cluster struct{ client *fake.FakeDynamicClient }

// GetClientFor implements engine.ClientProvider.
func (c cluster) GetClientFor(version, _ string) (dynamic.NamespaceableResourceInterface, bool, error) {
	return c.client.Resource(schema.GroupVersionResource{Version: version, Resource: "secrets"}), true, nil
}

// TestUpgradeKeepsSecrets: what the chart made up when it was installed stays.
func TestUpgradeKeepsSecrets(t *testing.T) {
	c, err := loaded()
	if err != nil {
		t.Fatal(err)
	}
	at, err := util.ToRenderValues(c, valuesOf(t, "evaluation"), common.ReleaseOptions{Name: usual, Namespace: "search", IsUpgrade: true}, nil)
	if err != nil {
		t.Fatal(err)
	}
	there := &corev1.Secret{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
		ObjectMeta: metav1.ObjectMeta{Name: "trawl-evaluation", Namespace: "search"},
		Data:       map[string][]byte{"access-key": []byte("access"), "secret-key": []byte("secret")},
	}
	files, err := engine.RenderWithClientProvider(c, at, cluster{fake.NewSimpleDynamicClient(scheme.Scheme, there)})
	if err != nil {
		t.Fatal(err)
	}
	found := false
	for _, o := range objects(t, files) {
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
