package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/trawl-search/trawl/cmd/trawl/internal/render"
	"github.com/trawl-search/trawl/internal/tlsfiles"
)

// podAnswer bounds one question to a pod in time, and podReason its answer in bytes.
const (
	podAnswer = 5 * time.Second
	podReason = 4 << 10
)

// podClient asks pods whether they are ready.
type podClient struct {
	tls *tlsfiles.Client // nil: plain text
}

func newPodClient(caFile string) (podClient, error) {
	if caFile == "" {
		return podClient{}, nil
	}
	files, err := tlsfiles.NewClient(tlsfiles.ClientConfig{CAFile: caFile}, slog.New(slog.DiscardHandler))
	return podClient{files}, err
}

// awaitPods waits until all roles are ready, or says what is not.
func (t *selfTest) awaitPods(ctx context.Context) error {
	limited, cancel := context.WithTimeout(ctx, t.Patience)
	defer cancel()
	ask, err := newPodClient(t.PodsCA)
	if err != nil {
		return err
	}
	var missing []error
	for _, pods := range t.Pods {
		role, address, _ := strings.Cut(pods, "=")
		count, err := ask.awaitRole(limited, role, address)
		missing = append(missing, err)
		if err == nil {
			t.sayf("%s: %d ready", role, count)
		}
	}
	return errors.Join(missing...)
}

// awaitRole asks until every address is ready, and counts them. When ctx ends,
// the last problem is the error.
func (c podClient) awaitRole(ctx context.Context, role, address string) (int, error) {
	for {
		count, problem := c.askRole(context.WithoutCancel(ctx), role, address)
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
func (c podClient) askRole(ctx context.Context, role, address string) (int, error) {
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
		problems = append(problems, c.askPod(ctx, role, host, net.JoinHostPort(addr, port)))
	}
	return len(list), errors.Join(problems...)
}

// askPod says what a pod is not ready for.
func (c podClient) askPod(ctx context.Context, role, host, address string) error {
	scheme, transport := "http://", http.DefaultTransport
	if c.tls != nil {
		conf := c.tls.Config()
		conf.ServerName = host
		scheme, transport = "https://", &http.Transport{TLSClientConfig: conf, DisableKeepAlives: true}
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, scheme+address+"/readyz", http.NoBody)
	if err != nil {
		return fmt.Errorf("%s: %w", role, err)
	}
	resp, err := (&http.Client{Transport: transport}).Do(req)
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
