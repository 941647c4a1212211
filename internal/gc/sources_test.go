package gc

import (
	"crypto/sha256"
	"testing"
	"testing/synctest"
	"time"

	"github.com/trawl-search/trawl/internal/catalog"
)

// TestCopiesOfSources: a copy of a source is never garbage, is counted, and is well if
// its content is what its key says.
func TestCopiesOfSources(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, c := replaced(t)
		plain := w.pass(c).Kept.Objects
		good := catalog.SourceKey("acme", 3, sha256.Sum256([]byte("good")))
		bad := catalog.SourceKey("acme", 4, sha256.Sum256([]byte("better")))
		for _, key := range []string{good, bad} {
			if err := put(t.Context(), w.bucket, key, []byte("good")); err != nil {
				t.Fatal(err)
			}
		}
		audit := func(contents bool) (problems map[string]Problem, well int) {
			problems = map[string]Problem{}
			n, err := c.Audit(t.Context(), contents, func(f Finding) error { problems[f.Key] = f.Problem; return nil })
			if err != nil {
				t.Error(err)
			}
			return problems, n.Objects
		}
		found, well := audit(false)
		if well != 4 || found[good] != "" || found[bad] != "" {
			t.Errorf("%d are well, found %v", well, found)
		}
		if found, well = audit(true); well != 3 || found[good] != "" || found[bad] != WrongDigest {
			t.Errorf("contents read: %d are well, found %v", well, found)
		}
		for range 3 {
			if kept := w.pass(c).Kept.Objects; kept != plain+2 {
				t.Errorf("%d objects are kept, want %d", kept, plain+2)
			}
			time.Sleep(hold + time.Second)
		}
		for _, key := range []string{good, bad} {
			if _, err := w.bucket.Stat(t.Context(), key); err != nil {
				t.Error(err)
			}
		}
	})
}
