package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/trawl-search/trawl/cmd/trawl/internal/render"
)

// podAnswer bounds one question to a pod in time, and podReason its answer in bytes.
const (
	podAnswer = 5 * time.Second
	podReason = 4 << 10
)

// awaitPods waits until all roles are ready, or says what is not.
func (t *selfTest) awaitPods(ctx context.Context) error {
	limited, cancel := context.WithTimeout(ctx, t.Patience)
	defer cancel()
	var missing []error
	for _, pods := range t.Pods {
		role, address, _ := strings.Cut(pods, "=")
		count, err := awaitRole(limited, role, address)
		missing = append(missing, err)
		if err == nil {
			t.sayf("%s: %d ready", role, count)
		}
	}
	return errors.Join(missing...)
}

// awaitRole asks until every address is ready, and counts them. When ctx ends,
// the last problem is the error.
func awaitRole(ctx context.Context, role, address string) (int, error) {
	for {
		count, problem := askRole(context.WithoutCancel(ctx), role, address)
		if problem == nil {
			return count, nil
		}
		select {
		case <-ctx.Done():
			return 0, problem
		case <-time.After(time.Second):
		}
	}
}

// askRole asks each address of a role once.
func askRole(ctx context.Context, role, address string) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, podAnswer)
	defer cancel()
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", role, err)
	}
	list, err := net.DefaultResolver.LookupHost(ctx, host)
	if err != nil {
		return 0, fmt.Errorf("%s: there is none, or names are not resolved: %w", role, err)
	}
	var problems []error
	for _, addr := range list {
		problems = append(problems, askPod(ctx, role, net.JoinHostPort(addr, port)))
	}
	return len(list), errors.Join(problems...)
}

// askPod says what a pod is not ready for.
func askPod(ctx context.Context, role, address string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/readyz", http.NoBody)
	if err != nil {
		return fmt.Errorf("%s: %w", role, err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return fmt.Errorf("%s: %w", role, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusOK {
		return nil
	}
	reason, err := io.ReadAll(io.LimitReader(resp.Body, podReason))
	if err != nil {
		return fmt.Errorf("%s at %s: %w", role, address, err)
	}
	lines := strings.ReplaceAll(strings.TrimSpace(string(reason)), "\n", "; ")
	return fmt.Errorf("%s at %s is not ready: %s", role, address, render.Safe([]byte(lines)))
}
