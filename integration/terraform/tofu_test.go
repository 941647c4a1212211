package terraform_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/trawl-search/trawl/internal/pinned"
	"github.com/trawl-search/trawl/internal/testrun"
)

var tofuProgram = pinned.Program{Name: "tofu", Module: "tools/tofu/opentofu", Package: "github.com/opentofu/opentofu/cmd/tofu"}

// provider is a plugin and the version under which the test offers it.
type provider struct {
	pinned.Program

	version string
}

// providers are those that the modules require, by their names in the registry.
var providers = map[string]provider{
	"aws":        {pinned.Program{Name: "terraform-provider-aws-fake", Module: "tools/tofu", Package: "./aws"}, "5.0.0"},
	"helm":       {pinned.Program{Name: "terraform-provider-helm", Module: "tools/tofu", Package: "github.com/hashicorp/terraform-provider-helm"}, "3.2.0"},
	"kubernetes": {pinned.Program{Name: "terraform-provider-kubernetes", Module: "tools/tofu", Package: "github.com/hashicorp/terraform-provider-kubernetes"}, "3.2.1"},
}

// tofu runs OpenTofu on copies of the modules, with these providers only.
type tofu struct {
	t      *testing.T
	binary string
	root   string // of the copy
	env    []string
}

// program returns the path of a program. If it is not built yet, program builds it if
// TRAWL_TEST_TERRAFORM says so, and otherwise skips the test.
func program(t *testing.T, p pinned.Program) string {
	t.Helper()
	built, err := pinned.Built(t.Context(), p)
	must(t, err)
	if !built && os.Getenv("TRAWL_TEST_TERRAFORM") != "build" {
		t.Skipf("TERRAFORM IS NOT TESTED: %s is not built; make terraform-test builds it, in about ten minutes", p.Name)
	}
	path, err := pinned.Build(t.Context(), p)
	must(t, err)
	return path
}

func newTofu(t *testing.T) *tofu {
	t.Helper()
	repository, err := pinned.Repository(t.Context())
	must(t, err)
	x := &tofu{t: t, binary: program(t, tofuProgram), root: t.TempDir()}
	t.Log("NOT TESTED with the provider of AWS itself: a stand-in has the schemas of the resources in use, and creates nothing")
	mirror := t.TempDir()
	for name, p := range providers {
		dir := filepath.Join(mirror, "registry.opentofu.org", "hashicorp", name, p.version, runtime.GOOS+"_"+runtime.GOARCH)
		must(t, os.MkdirAll(dir, 0o755))
		must(t, os.Symlink(program(t, p.Program), filepath.Join(dir, fmt.Sprintf("terraform-provider-%s_v%s", name, p.version))))
	}
	rc := filepath.Join(mirror, "tofurc")
	must(t, os.WriteFile(rc, fmt.Appendf(nil, "provider_installation {\n  filesystem_mirror {\n    path = %q\n  }\n}\n", mirror), 0o600))
	x.env = append(os.Environ(), "TF_CLI_CONFIG_FILE="+rc, "TF_IN_AUTOMATION=1", "CHECKPOINT_DISABLE=1")
	for _, part := range []string{"terraform", filepath.Join("charts", "trawl")} {
		must(t, os.CopyFS(filepath.Join(x.root, part), os.DirFS(filepath.Join(repository, part))))
	}
	return x
}

var must = testrun.Must

// run runs a command in a folder below terraform, and returns its standard output.
func (x *tofu) run(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), x.binary, args...)
	cmd.Dir, cmd.Env = filepath.Join(x.root, "terraform", dir), x.env
	var said, wrong strings.Builder
	cmd.Stdout, cmd.Stderr = &said, &wrong
	if err := cmd.Run(); err != nil {
		t.Fatalf("tofu %s in %s: %v\n%s%s", strings.Join(args, " "), dir, err, said.String(), wrong.String())
	}
	return said.String()
}

// folders returns the folders below terraform that have tests.
func (x *tofu) folders() []string {
	x.t.Helper()
	found, err := filepath.Glob(filepath.Join(x.root, "terraform", "*", "*", "tests"))
	must(x.t, err)
	for i, path := range found {
		found[i], err = filepath.Rel(filepath.Join(x.root, "terraform"), filepath.Dir(path))
		must(x.t, err)
	}
	return found
}

// TestModules: all files are formatted, and every module and example is valid and passes its
// tests.
func TestModules(t *testing.T) {
	x := newTofu(t)
	x.run(t, ".", "fmt", "-check", "-diff", "-recursive")
	folders := x.folders()
	for _, want := range []string{"modules/bucket", "modules/identities", "modules/release", "examples/eks", "examples/existing-cluster"} {
		if !slices.Contains(folders, want) {
			t.Errorf("%s has no tests", want)
		}
	}
	for _, dir := range folders {
		t.Run(dir, func(t *testing.T) {
			x.run(t, dir, "init", "-input=false", "-no-color")
			x.run(t, dir, "validate", "-no-color")
			x.tests(t, dir)
		})
	}
}

// tests runs the tests of a module, each as a Go subtest.
func (x *tofu) tests(t *testing.T, dir string) {
	t.Helper()
	passed := 0
	for line := range strings.Lines(x.run(t, dir, "test", "-json")) {
		var event struct {
			Type string `json:"type"`
			Run  struct {
				Run    string `json:"run"`
				Status string `json:"status"`
			} `json:"test_run"`
		}
		must(t, json.Unmarshal([]byte(line), &event))
		if event.Type != "test_run" {
			continue
		}
		passed++
		t.Run(event.Run.Run, func(t *testing.T) {
			if event.Run.Status != "pass" {
				t.Error(event.Run.Status)
			}
		})
	}
	if passed == 0 {
		t.Error("no test ran")
	}
}

// TestApply applies the example for an existing cluster to one, and destroys it.
func TestApply(t *testing.T) {
	kubeconfig := os.Getenv("TRAWL_TEST_KUBECONFIG")
	if kubeconfig == "" {
		t.Skip("set TRAWL_TEST_KUBECONFIG to a cluster to apply the example to")
	}
	x := newTofu(t)
	const dir, namespace = "examples/existing-cluster", "trawl-terraform"
	values, err := json.Marshal(filepath.SplitList(os.Getenv("TRAWL_TEST_VALUES")))
	must(t, err)
	args := []string{"-auto-approve", "-no-color", "-input=false", "-var=kubeconfig=" + kubeconfig, "-var=namespace=" + namespace, "-var=values=" + string(values)}
	x.run(t, dir, "init", "-input=false", "-no-color")
	t.Cleanup(func() {
		x.run(t, dir, append([]string{"destroy"}, args...)...)
		if left := strings.TrimSpace(x.run(t, dir, "state", "list")); left != "" {
			t.Errorf("left over: %s", left)
		}
	})
	x.run(t, dir, append([]string{"apply"}, args...)...)
	if got := x.run(t, dir, "output", "-raw", "namespace"); got != namespace {
		t.Errorf("applied to %q", got)
	}
	plan := x.run(t, dir, append([]string{"plan", "-detailed-exitcode"}, args[1:]...)...)
	t.Log(plan)
}
