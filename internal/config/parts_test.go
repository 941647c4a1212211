package config_test

import (
	"strings"
	"testing"

	"github.com/trawl-search/trawl/internal/config"
)

type part struct {
	Size int `config:"size" doc:"at least 1"`
}

func (p *part) SetDefaults() { p.Size = 7 }

func (p *part) Validate() error {
	var check config.Check
	check.That(p.Size >= 1, "size", p.Size, "at least 1")
	return check.Err()
}

// TestPartsOfSettings: the parts of a struct have their defaults, and complain with the keys of their fields. An embedded part has those of
// the struct itself, and may have a type that is not exported.
func TestPartsOfSettings(t *testing.T) {
	var s struct {
		part
		Other int  `config:"other" doc:"no part"`
		More  part `config:"more"`
	}
	config.Defaults(&s)
	if s.Size != 7 || s.More.Size != 7 || config.Validate(&s) != nil {
		t.Errorf("the defaults are %+v: %v", s, config.Validate(&s))
	}
	s.Size, s.More.Size = 0, -1
	err := config.Validate(&s)
	if err == nil || strings.Count(err.Error(), "\n") != 1 || !strings.HasPrefix(err.Error(), `size = "0"`) || !strings.Contains(err.Error(), `more.size = "-1"`) {
		t.Errorf("wrong are both sizes: %v", err)
	}
}
