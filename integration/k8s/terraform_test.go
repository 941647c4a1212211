package k8s

import (
	"os"
	"os/exec"
	"path/filepath"

	"github.com/trawl-search/trawl/internal/pinned"
)

// smallCaches need no volumes.
const smallCaches = `evaluation: {persistence: {enabled: false}}
searcher: {cache: {type: emptyDir}}
indexer: {replicas: 1, cache: {type: emptyDir}}
`

// terraform applies the Terraform example for an existing cluster, and destroys it.
func (e *e2e) terraform() {
	small := filepath.Join(e.dir, "small.yaml")
	e.must(os.WriteFile(small, []byte(smallCaches), 0o600))
	root, err := pinned.Repository(e.t.Context())
	e.must(err)
	cmd := exec.CommandContext(e.t.Context(), "go", "test", "-v", "-count=1", "-timeout=60m", "-run=^TestApply$", "./integration/terraform")
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "TRAWL_TEST_KUBECONFIG="+e.Kubeconfig, "TRAWL_TEST_VALUES="+e.values+string(filepath.ListSeparator)+small)
	out, err := cmd.CombinedOutput()
	e.t.Logf("%s", out)
	e.must(err)
}
