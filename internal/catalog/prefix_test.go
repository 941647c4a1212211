package catalog_test

import (
	"strings"
	"testing"

	"github.com/trawl-search/trawl/internal/catalog"
)

func TestPrefixesThatAreRefused(t *testing.T) {
	for _, prefix := range []string{"", "/", "//", "trawl/", "/trawl", "/a//b/", "/a b/", "/a*/", "/ä/", "/" + strings.Repeat("a", 127) + "/"} {
		if catalog.CheckPrefix(prefix) == nil {
			t.Errorf("%q is accepted", prefix)
		}
	}
	for _, prefix := range []string{catalog.DefaultPrefix, "/a/", "/team.x/trawl-2/v_1/"} {
		if err := catalog.CheckPrefix(prefix); err != nil {
			t.Error(err)
		}
	}
}
