package charttest

import (
	"bytes"
	"io"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/yannh/kubeconform/pkg/validator"
)

// foreign are kinds that other programs add to a cluster.
var foreign = map[string]struct{}{"Certificate": {}, "GRPCRoute": {}, "HTTPRoute": {}, "ServiceMonitor": {}, "PrometheusRule": {}, "ScaledObject": {}}

func conformer(t *testing.T) validator.Validator {
	t.Helper()
	dir := t.TempDir()
	if err := writeSchemas(dir); err != nil {
		t.Fatal(err)
	}
	v, err := validator.New([]string{dir + "/{{ .ResourceKind }}{{ .KindSuffix }}.json"}, validator.Opts{
		Strict: true, KubernetesVersion: strings.TrimPrefix(kubernetes, "v"), SkipKinds: foreign,
	})
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// TestObjectsConform: all objects conform to the API of Kubernetes.
func TestObjectsConform(t *testing.T) {
	v := conformer(t)
	eachUsual(t, func(t *testing.T, r rendered) {
		valid := 0
		for _, o := range r.objects {
			for _, result := range v.Validate(o.String(), io.NopCloser(bytes.NewReader(o.raw))) {
				switch result.Status {
				case validator.Valid:
					valid++
				case validator.Skipped:
				default:
					t.Errorf("%s: %v\n%s", o, result.Err, o.raw)
				}
			}
		}
		if valid < 10 {
			t.Errorf("only %d objects were looked at", valid)
		}
	})
}

// TestConformerRefuses: an unknown field and a value of the wrong type are refused.
func TestConformerRefuses(t *testing.T) {
	v := conformer(t)
	for _, wrong := range []string{"spec: {replica: 1}", "spec: {replicas: x}"} {
		text := "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a}\n" + wrong + "\n"
		for _, result := range v.Validate("wrong", io.NopCloser(strings.NewReader(text))) {
			if result.Status != validator.Invalid {
				t.Errorf("%s: %v, %v", wrong, result.Status, result.Err)
			}
		}
	}
}

// accepted are complaints of kube-score that are not faults of the chart.
var accepted = []*regexp.Regexp{
	// Tags are versions: what was pulled once need not be pulled again.
	regexp.MustCompile(`ImagePullPolicy is not set to Always`),
	// Caches are volumes with their own sizes. A limit would have to include them.
	regexp.MustCompile(`Ephemeral Storage (request|limit) is not set`),
	// Servers of an evaluation are reached by an ordinary Service, whose address stays.
	regexp.MustCompile(`-(etcd|nats|s3)/.*StatefulSet does not have a valid serviceName`),
}

// chosen is what OpenShift chooses if the values leave it open.
var chosen = regexp.MustCompile(`running with a low (user|group) ID`)

// TestScore: kube-score finds nothing critical.
func TestScore(t *testing.T) {
	kubeScore := tool(t, "kube-score")
	eachUsual(t, func(t *testing.T, r rendered) {
		if r.set == "minimal" {
			return // it leaves out what kube-score asks for
		}
		var in bytes.Buffer
		for _, o := range r.objects {
			if _, alien := foreign[o.kind]; !alien {
				in.WriteString("---\n" + string(o.raw) + "\n")
			}
		}
		cmd := exec.CommandContext(t.Context(), kubeScore, "score", "--output-format", "ci", "--ignore-container-cpu-limit", "-")
		cmd.Stdin = &in
		out, _ := cmd.Output() // its status is 1 for what is accepted, too
		scored := 0
		for line := range strings.Lines(string(out)) {
			if strings.HasPrefix(line, "[OK]") {
				scored++
			}
			if strings.HasPrefix(line, "[CRITICAL]") && !accept(line) && !(r.set == "customized" && chosen.MatchString(line)) {
				t.Error(strings.TrimSpace(line))
			}
		}
		if scored < 10 {
			t.Errorf("only %d things were scored: %s", scored, out)
		}
	})
}

func accept(line string) bool {
	for _, a := range accepted {
		if a.MatchString(line) {
			return true
		}
	}
	return false
}
