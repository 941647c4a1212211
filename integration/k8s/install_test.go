package k8s

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/trawl-search/trawl/internal/pinned"
)

// heading is the heading of the README's section on Kubernetes.
const heading = "## Run it on Kubernetes"

// readme runs the commands of the README in one shell. It replaces only what is not available
// here: images of a registry and a repository on the internet.
func (e *e2e) readme() {
	root, err := pinned.Repository(e.t.Context())
	e.must(err)
	script := e.commands(filepath.Join(root, "README.md"))
	for from, to := range map[string]string{
		"helm install trawl charts/trawl ":  "helm install trawl " + filepath.Join(root, "charts", "trawl") + " --timeout=4m --values=" + e.values + " ",
		"https://github.com/golang/example": e.repos[0].url,
	} {
		if !strings.Contains(script, from) {
			e.t.Fatalf("the README does not have %q:\n%s", from, script)
		}
		script = strings.ReplaceAll(script, from, to)
	}
	cmd := exec.CommandContext(e.t.Context(), "bash", "-euxo", "pipefail", "-c", script)
	cmd.Dir = e.dir
	cmd.Env = append(os.Environ(), "KUBECONFIG="+e.Kubeconfig, "PATH="+e.Bin()+":"+os.Getenv("PATH"))
	out, err := cmd.CombinedOutput()
	e.t.Logf("%s", out)
	e.must(err)
	if !strings.Contains(string(out), "file0.txt") {
		e.t.Error("the search of the README found nothing")
	}
	token, err := os.ReadFile(filepath.Join(e.dir, "token"))
	e.must(err)
	e.token = strings.TrimSpace(string(token))
	e.router = e.port(e.namespace, "trawl-router", "grpc")
}

// commands returns the section's commands: its lines indented by four spaces.
func (e *e2e) commands(file string) string {
	e.t.Helper()
	text, err := os.ReadFile(file)
	e.must(err)
	_, section, ok := strings.Cut(string(text), heading+"\n")
	if !ok {
		e.t.Fatalf("%s has no %q", file, heading)
	}
	section, _, _ = strings.Cut(section, "\n## ")
	var lines []string
	for line := range strings.Lines(section) {
		if command, ok := strings.CutPrefix(line, "    "); ok {
			lines = append(lines, command)
		}
	}
	return strings.Join(lines, "")
}

// helmTest runs the chart's own test, which must have asked each pod of each role.
func (e *e2e) helmTest() {
	e.t.Helper()
	out := e.helm("test", "trawl", "--logs", "--timeout=4m")
	e.t.Log(out)
	for _, role := range []string{"router", "searcher", "indexer"} {
		pods := e.kubectl("get", "pods", "--namespace="+e.namespace, "--selector=app.kubernetes.io/component="+role, "--output=name")
		if want := fmt.Sprintf("%s: %d ready", role, len(strings.Fields(pods))); !strings.Contains(out, want) {
			e.t.Errorf("helm test does not say %q", want)
		}
	}
}

// indexAndSearch indexes three repositories and finds all of them.
func (e *e2e) indexAndSearch() {
	c := e.newCaller()
	defer c.close()
	e.index(c)
	e.complete(c)
}

// complete waits for a complete answer. Earlier answers must name what is missing.
func (e *e2e) complete(c *caller) {
	e.t.Helper()
	eventually(e.t, "an answer is complete", func(ctx context.Context) error {
		answer, err := c.search(ctx)
		if err != nil {
			return err
		}
		e.must(wrong(answer, e.repos))
		if !answer.GetCoverage().GetComplete() {
			return fmt.Errorf("its coverage is %v", answer.GetCoverage())
		}
		return nil
	})
}
