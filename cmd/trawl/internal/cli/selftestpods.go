package cli

import (
	"cmp"
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
	"github.com/trawl-search/trawl/internal/wait"
)

// podAnswer bounds the time of one request to a pod, and podReason the bytes of its answer.
const (
	podAnswer = 5 * time.Second
	podReason = 4 << 10
)

// podClient asks pods whether they are ready.
type podClient struct {
	tls *tlsfiles.Client // nil: plain text
	// name is the host that certificates must be for; empty: the requested one.
	name string
}

// podsOf are the pods of a role, and how they are asked.
type podsOf struct {
	role, address string
	ask           podClient
}

// allPods returns the pods that must be ready. Routers show the certificate that their callers see.
// Another CA may have signed those of the other roles.
func (t *selfTest) allPods() (all []podsOf, err error) {
	log := slog.New(slog.DiscardHandler)
	if t.Routers != "" {
		var ask podClient
		if t.TLS || t.CAFile != "" {
			if ask.tls, err = tlsfiles.NewClient(t.callers(), log); err != nil {
				return nil, err
			}
			if ask.name, _, err = net.SplitHostPort(t.Addr); err != nil {
				return nil, fmt.Errorf("address of a router: %w", err)
			}
		}
		all = append(all, podsOf{"router", t.Routers, ask})
	}
	var ask podClient
	if t.PodsCA != "" {
		if ask.tls, err = tlsfiles.NewClient(tlsfiles.ClientConfig{CAFile: t.PodsCA}, log); err != nil {
			return nil, err
		}
	}
	for _, pods := range t.Pods {
		role, address, _ := strings.Cut(pods, "=")
		all = append(all, podsOf{role, address, ask})
	}
	return all, nil
}

// awaitPods waits until all roles are ready. Its error names those that are not.
func (t *selfTest) awaitPods(ctx context.Context) error {
	limited, cancel := context.WithTimeout(ctx, t.Patience)
	defer cancel()
	all, err := t.allPods()
	if err != nil {
		return err
	}
	var missing []error
	for _, pods := range all {
		count, err := pods.ask.awaitRole(limited, pods.role, pods.address)
		missing = append(missing, err)
		if err == nil {
			t.sayf("%s: %d ready", pods.role, count)
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
		if !wait.Sleep(ctx, time.Second) {
			return 0, problem
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
		return 0, fmt.Errorf("%s: found none, or its name does not resolve: %w", role, err)
	}
	var problems []error
	for _, addr := range list {
		problems = append(problems, c.askPod(ctx, role, host, net.JoinHostPort(addr, port)))
	}
	return len(list), errors.Join(problems...)
}

// askPod returns why a pod is not ready, or nil.
func (c podClient) askPod(ctx context.Context, role, host, address string) error {
	scheme, transport := "http://", http.DefaultTransport
	if c.tls != nil {
		conf := c.tls.Config()
		conf.ServerName = cmp.Or(c.name, host)
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
