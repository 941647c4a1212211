package mcptools

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/trawl-search/trawl/internal/searchapi"
)

// TestProblems: each kind of failure says what to do.
func TestProblems(t *testing.T) {
	for _, c := range []struct {
		err  error
		want string
	}{
		{status.Error(codes.Unavailable, "etcd is away"), "try again in a few seconds"},
		{searchapi.Overloaded("too much", time.Second), "wait a second"},
		{status.Error(codes.Unauthenticated, "the token was refused"), "cannot be solved by another call"},
		{fmt.Errorf("count: %w", context.DeadlineExceeded), "ask for fewer"},
		{status.Error(codes.DataLoss, "bad sum"), "report it"},
		{fmt.Errorf("x: %w", errCursor), "pass it with the arguments"},
		{errors.New("own"), "own"},
	} {
		if got := problem(c.err).Error(); !strings.Contains(got, c.want) {
			t.Errorf("%v: %q, want %q", c.err, got, c.want)
		}
	}
	if got := problem(status.Error(codes.ResourceExhausted, "the message is too large")).Error(); got != "the message is too large" {
		t.Errorf("an error that waiting does not solve: %q", got)
	}
}
