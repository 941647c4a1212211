package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/mount"
	dockernet "github.com/moby/moby/api/types/network"
	"github.com/moby/moby/client"
	"github.com/testcontainers/testcontainers-go"
	"github.com/testcontainers/testcontainers-go/exec"
	"github.com/testcontainers/testcontainers-go/network"
	"github.com/testcontainers/testcontainers-go/wait"

	"github.com/trawl-search/trawl/internal/testrun"
)

// startTime bounds the start of one container.
const startTime = 2 * time.Minute

// spec describes a container.
type spec struct {
	name  string // its host name in the network
	image string
	args  []string
	env   map[string]string
	files []testcontainers.ContainerFile
	// volumes are folders that outlive a restart.
	volumes []string
	// tmpfs are folders in memory with their options, as "size=8m".
	tmpfs map[string]string
	ports []string
	// asImage runs it as the user of its image. Others run as root, to whom volumes and tmpfs belong here.
	asImage bool
	// fixed keeps the ports on this machine across restarts.
	fixed bool
	// memory limits all processes of the container together, in bytes; 0: no limit.
	memory int64
	// ready is awaited before the start counts as done.
	ready wait.Strategy
}

// node is one container of a cluster. Unless they say otherwise, its methods must be called
// from the test's goroutine.
type node struct {
	*testcontainers.DockerContainer
	name    string
	docker  *client.Client
	network string
}

// start starts a container. It is safe for concurrent use.
func (c *cluster) start(ctx context.Context, s spec) (*node, error) {
	var fixing error
	started, err := testcontainers.Run(ctx, s.image,
		testcontainers.WithCmd(s.args...),
		testcontainers.WithEnv(s.env),
		testcontainers.WithFiles(s.files...),
		testcontainers.WithTmpfs(s.tmpfs),
		testcontainers.WithExposedPorts(s.ports...),
		testcontainers.WithLabels(map[string]string{label: c.name}),
		testcontainers.WithWaitStrategyAndDeadline(startTime, s.ready),
		network.WithNetwork([]string{s.name}, c.network),
		testcontainers.WithConfigModifier(func(cfg *container.Config) {
			if !s.asImage {
				cfg.User = "0:0"
			}
		}),
		testcontainers.WithHostConfigModifier(func(host *container.HostConfig) {
			if s.fixed {
				fixing = s.fix(host)
			}
			host.Memory, host.MemorySwap = s.memory, s.memory
			for _, path := range s.volumes {
				host.Mounts = append(host.Mounts, mount.Mount{
					Type: mount.TypeVolume, Target: path, VolumeOptions: &mount.VolumeOptions{Labels: map[string]string{label: c.name}},
				})
			}
		}))
	err = errors.Join(err, fixing)
	if started == nil {
		return nil, fmt.Errorf("start %s: %w", s.name, err)
	}
	n := &node{DockerContainer: started, name: s.name, docker: c.docker, network: c.network.ID}
	c.mu.Lock()
	c.nodes = append(c.nodes, n)
	c.mu.Unlock()
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", s.name, err)
	}
	return n, nil
}

// fix binds the container's ports to free ports of this machine for good. The engine would
// choose other ports at each start.
func (s *spec) fix(host *container.HostConfig) error {
	host.PortBindings = dockernet.PortMap{}
	for _, text := range s.ports {
		port, err := dockernet.ParsePort(text)
		if err != nil {
			return err
		}
		free, err := freePort()
		if err != nil {
			return err
		}
		host.PortBindings[port] = []dockernet.PortBinding{{HostPort: free}}
	}
	return nil
}

// Fixed ports lie below the ephemeral range, so that neither the system nor the engine gives
// them to somebody else while the container is down.
const leastPort, portsEnd = 20_000, 32_000

// drawn holds the ports that freePort has returned: their containers may not listen yet.
var drawn sync.Map

// freePort returns a port that nobody listens on.
func freePort() (string, error) {
	var errs []error
	for range 20 {
		port := strconv.Itoa(leastPort + rand.IntN(portsEnd-leastPort))
		if _, taken := drawn.LoadOrStore(port, true); taken {
			continue
		}
		ln, err := net.Listen("tcp", ":"+port)
		if err == nil {
			return port, ln.Close()
		}
		errs = append(errs, err)
	}
	return "", errors.Join(errs...)
}

// discard removes a container and what it holds.
func (c *cluster) discard(n *node) {
	c.t.Helper()
	c.must(c.remove(c.t.Context(), n.ID))
	c.nodes = slices.DeleteFunc(c.nodes, func(other *node) bool { return other == n })
	c.t.Logf("%s removed, with its data", n.name)
}

// address is where this machine reaches a port of the container, such as "7430/tcp". It
// changes with each start unless the ports are fixed.
func (n *node) address(t *testing.T, port string) string {
	t.Helper()
	at, err := n.PortEndpoint(t.Context(), port, "")
	if err != nil {
		t.Fatalf("find %s of %s: %v", port, n.name, err)
	}
	return at
}

// ip is the container's address in the cluster's network.
func (n *node) ip(t *testing.T) netip.Addr {
	t.Helper()
	text, err := n.ContainerIP(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return netip.MustParseAddr(text)
}

// pause freezes the container's processes, as if its machine hung.
func (n *node) pause(t *testing.T) {
	t.Helper()
	_, err := n.docker.ContainerPause(t.Context(), n.ID, client.ContainerPauseOptions{})
	n.did(t, "paused", err)
}

func (n *node) unpause(t *testing.T) {
	t.Helper()
	_, err := n.docker.ContainerUnpause(t.Context(), n.ID, client.ContainerUnpauseOptions{})
	n.did(t, "unpaused", err)
}

// kill ends the container's processes at once.
func (n *node) kill(t *testing.T) {
	t.Helper()
	_, err := n.docker.ContainerKill(t.Context(), n.ID, client.ContainerKillOptions{})
	n.did(t, "killed", err)
}

// stop asks the process to end, and gives it a minute to do so.
func (n *node) stop(t *testing.T) {
	t.Helper()
	seconds := 60
	_, err := n.docker.ContainerStop(t.Context(), n.ID, client.ContainerStopOptions{Timeout: &seconds})
	n.did(t, "stopped", err)
	state, err := n.State(t.Context())
	if err != nil || state.ExitCode != 0 {
		t.Errorf("%s ended with status %d: %v", n.name, state.ExitCode, err)
	}
}

// restart starts an ended container again, on the data in its volumes.
func (n *node) restart(t *testing.T) {
	t.Helper()
	_, err := n.docker.ContainerStart(t.Context(), n.ID, client.ContainerStartOptions{})
	n.did(t, "started", err)
}

// disconnect takes the container out of the network.
func (n *node) disconnect(t *testing.T) {
	t.Helper()
	_, err := n.docker.NetworkDisconnect(t.Context(), n.network, client.NetworkDisconnectOptions{Container: n.ID, Force: true})
	n.did(t, "disconnected", err)
}

// connect puts the container back into the network under its name.
func (n *node) connect(t *testing.T) {
	t.Helper()
	_, err := n.docker.NetworkConnect(t.Context(), n.network, client.NetworkConnectOptions{
		Container: n.ID, EndpointConfig: aliased(n.name),
	})
	n.did(t, "connected", err)
}

func (n *node) did(t *testing.T, what string, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("%s could not be %s: %v", n.name, what, err)
	}
	t.Logf("%s %s", n.name, what)
}

// run runs a command in the container, which must have it.
func (n *node) run(t *testing.T, command ...string) string {
	t.Helper()
	status, output, err := n.Exec(t.Context(), command, exec.Multiplexed())
	if err != nil {
		t.Fatalf("%s: %v: %v", n.name, command, err)
	}
	text, _ := io.ReadAll(output)
	if status != 0 {
		t.Fatalf("%s: %v ended with status %d: %s", n.name, command, status, text)
	}
	return string(text)
}

// logged returns the container's whole log.
func (n *node) logged(ctx context.Context) string {
	logs, err := n.Logs(ctx)
	if err != nil {
		return fmt.Sprintf("the log of %s cannot be read: %v", n.name, err)
	}
	defer logs.Close()
	text, _ := io.ReadAll(logs)
	return string(text)
}

// ready waits until a role reports that it is ready.
func (n *node) ready(t *testing.T) {
	t.Helper()
	port := "7441/tcp"
	if strings.HasPrefix(n.name, "router") {
		port = "7431/tcp"
	}
	testrun.Eventually(t, n.name+" is ready", func(ctx context.Context) error {
		at, err := n.PortEndpoint(ctx, port, "http")
		if err != nil {
			return err
		}
		text, status, err := get(ctx, at+"/readyz")
		if err == nil && status != http.StatusOK {
			err = fmt.Errorf("status %d: %s", status, text)
		}
		return err
	})
}

func get(ctx context.Context, url string) (text string, status int, err error) {
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 2 * time.Second}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return "", 0, err
	}
	resp, err := client.Do(req)
	if err != nil {
		return "", 0, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return string(body), resp.StatusCode, err
}

// writeLogs keeps the logs of all containers, to help investigate a failure.
func (c *cluster) writeLogs(ctx context.Context) {
	dir := outputDir(c.t)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		c.t.Logf("the logs are not kept: %v", err)
		return
	}
	for i, n := range c.nodes {
		name := filepath.Join(dir, fmt.Sprintf("%02d-%s.log", i, n.name))
		if err := os.WriteFile(name, []byte(n.logged(ctx)), 0o644); err != nil {
			c.t.Logf("a log is not kept: %v", err)
		}
	}
	full, err := filepath.Abs(dir)
	c.t.Logf("the logs of all containers are in %s %v", full, err)
}
