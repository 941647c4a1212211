package integration

import (
	"os/exec"
	"strings"
	"testing"
)

// TestDemoOfARepositoryWithoutMatches: `make demo REPO=...` ends well although its queries find nothing there.
func TestDemoOfARepositoryWithoutMatches(t *testing.T) {
	repo := newRepository(t, t.TempDir(), "pond")
	repo.write("pond.txt", "fish\n")
	repo.commit("a pond")
	demo := exec.CommandContext(t.Context(), "../demo/run.sh", trawlBinary, "demo", repo.path)
	demo.Env = processEnv()
	out, err := demo.CombinedOutput()
	if err != nil || !strings.HasSuffix(string(out), "\nDone.\n") {
		t.Errorf("%v\n%s", err, out)
	}
}
