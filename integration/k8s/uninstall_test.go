package k8s

import (
	"context"
	"fmt"
	"strings"
)

// uninstall removes the release. Nothing is left of it but the claims of volumes with data.
func (e *e2e) uninstall() {
	e.helm("uninstall", "trawl", "--wait", "--timeout=4m")
	kinds := e.kinds("--namespaced=true")
	eventually(e.t, "nothing is left but volumes", func(ctx context.Context) error {
		out, err := e.Kubectl(ctx, "get", kinds, "--namespace="+e.namespace, "--output=name")
		var left []string
		for name := range strings.FieldsSeq(out) {
			if name != "configmap/kube-root-ca.crt" && name != "serviceaccount/default" && !strings.HasPrefix(name, "event") && !e.own[name] &&
				!strings.HasPrefix(name, "persistentvolumeclaim/") {
				left = append(left, name)
			}
		}
		if err == nil && len(left) > 0 {
			err = fmt.Errorf("there are %v", left)
		}
		return err
	})
	e.t.Logf("left are %s", strings.Fields(e.kubectl("get", "persistentvolumeclaims", "--namespace="+e.namespace, "--output=name")))
	if left := e.kubectl("get", e.kinds("--namespaced=false"), "--selector=app.kubernetes.io/instance=trawl", "--output=name"); left != "" {
		e.t.Errorf("beyond the namespace there are %s", left)
	}
}

// kinds are all kinds of objects that can be listed.
func (e *e2e) kinds(args ...string) string {
	e.t.Helper()
	var list []string
	for kind := range strings.FieldsSeq(e.kubectl(append([]string{"api-resources", "--verbs=list", "--output=name"}, args...)...)) {
		list = append(list, kind)
	}
	return strings.Join(list, ",")
}
