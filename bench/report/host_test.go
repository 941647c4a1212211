package report

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestSave: text and picture are next to each other, named by the time of the
// run.
func TestSave(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "new", "results")
	started := time.Date(2026, 11, 22, 1, 2, 3, 0, time.FixedZone("east", 3600))
	stem, err := Save(folder, "go", started, map[string][]byte{".txt": []byte("text"), ".svg": []byte("picture")})
	if err != nil || stem != filepath.Join(folder, "2026-11-22-000203-go") {
		t.Fatal(stem, err)
	}
	for suffix, want := range map[string]string{".txt": "text", ".svg": "picture"} {
		if got, err := os.ReadFile(stem + suffix); err != nil || string(got) != want {
			t.Errorf("%s holds %q (%v)", suffix, got, err)
		}
	}
}

func TestHostNamesWhatIsNeededToCompare(t *testing.T) {
	var b bytes.Buffer
	Host(t.Context(), &b, []string{"-corpus", "go"})
	for _, want := range []string{"  commit    ", "  machine   ", " processors, ", "  load      ", "  go        go1", "  flags     -corpus go\n"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
}
