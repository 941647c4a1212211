package cli

import (
	"context"
	"strings"
	"testing"

	"google.golang.org/protobuf/types/known/timestamppb"

	adminv1 "github.com/trawl-search/trawl/proto/trawl/admin/v1"
)

func (s *scripted) ListLimits(context.Context, *adminv1.ListLimitsRequest) (*adminv1.ListLimitsResponse, error) {
	return &adminv1.ListLimitsResponse{Limits: []*adminv1.Limit{
		{Name: "caller-calls", Setting: "250", Value: "300", SetAt: timestamppb.Now(), SetBy: "token abc (ops)"},
		{Name: "compact.deltas"},
	}}, nil
}

func (s *scripted) SetLimit(_ context.Context, req *adminv1.SetLimitRequest) (*adminv1.SetLimitResponse, error) {
	s.limits = append(s.limits, req)
	return &adminv1.SetLimitResponse{Before: "300"}, nil
}

// TestLimits: the list shows who set what, and set and unset say what was before.
func TestLimits(t *testing.T) {
	for _, c := range []struct {
		args  []string
		exit  int
		want  []string
		asked string
	}{
		{[]string{"list"}, 0, []string{"NAME            LIMIT  SETTING", "caller-calls    300    250", "token abc (ops)", "compact.deltas  -      of each indexer  -"}, ""},
		{[]string{"list", "--json"}, 0, []string{`"name":`, `"set_by":`}, ""},
		{[]string{"set", "caller-calls", "500"}, 0, []string{"caller-calls: 500; before: 300"}, "caller-calls=500"},
		{[]string{"unset", "caller-calls"}, 0, []string{"caller-calls: the setting; before: 300"}, "caller-calls="},
		{[]string{"set", "caller-calls"}, 2, []string{"want NAME VALUE, got"}, ""},
		{[]string{"set", "caller-calls", ""}, 2, []string{"trawl limits unset caller-calls"}, ""},
	} {
		s := &scripted{}
		exit, out, errs := trawl(t, s, append([]string{"limits"}, c.args...)...)
		for _, want := range c.want {
			if exit != c.exit || !strings.Contains(out+errs, want) {
				t.Errorf("limits %v: exit %d, want %d and %q in\n%s%s", c.args, exit, c.exit, want, out, errs)
			}
		}
		var asked []string
		for _, req := range s.limits {
			asked = append(asked, req.GetName()+"="+req.GetValue())
		}
		if strings.Join(asked, " ") != c.asked {
			t.Errorf("limits %v: asked for %v, want %q", c.args, asked, c.asked)
		}
	}
}
