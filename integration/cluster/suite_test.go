package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/moby/moby/client"
	"github.com/testcontainers/testcontainers-go/log"
)

const (
	// label marks everything that the tests create in the engine; its value names the run.
	label = "org.trawl-search.test.cluster"
	// engineWait bounds how long the engine may take to answer at all.
	engineWait = 10 * time.Second
	// sweepTime bounds a cleanup.
	sweepTime = 2 * time.Minute
)

func TestMain(m *testing.M) {
	// The reaper's image cannot be pulled; sweep does its work.
	os.Setenv("TESTCONTAINERS_RYUK_DISABLED", "true")
	if _, err := os.Stat("/.dockerenv"); err == nil && os.Getenv("TESTCONTAINERS_HOST_OVERRIDE") == "" {
		// Because of that file Testcontainers takes this machine for a container.
		os.Setenv("TESTCONTAINERS_HOST_OVERRIDE", "127.0.0.1")
	}
	log.SetDefault(log.NewNoopLogger()) // it logs each step of each container
	status := m.Run()
	if prepareStarted && !leftNothing() {
		status = max(status, 1)
	}
	os.Exit(status)
}

// leftNothing reports whether the tests removed everything that they made, and removes the
// rest.
func leftNothing() bool {
	s, err := prepared()
	if err != nil {
		return true // nothing was made, and the tests reported why
	}
	defer s.lock.Close()
	left, err := s.sweep(context.Background())
	if len(left) > 0 || err != nil {
		fmt.Fprintf(os.Stderr, "the tests left behind %v: %v\n", left, err)
		return false
	}
	return true
}

// suite holds what all tests of a run share.
type suite struct {
	docker *client.Client
	images imageSet
	lock   *os.File // held: one run at a time on this machine
}

var (
	prepareStarted bool
	prepared       = sync.OnceValues(func() (*suite, error) {
		prepareStarted = true
		return prepare(context.Background())
	})
)

// errNoEngine means that no Docker engine answers.
var errNoEngine = errors.New("no Docker engine answers")

// need returns the suite. Without an engine it skips the test, or fails it in CI.
func need(t *testing.T) *suite {
	t.Helper()
	s, err := prepared()
	if errors.Is(err, errNoEngine) && os.Getenv("CI") != "true" {
		t.Skipf("NOT TESTED in containers: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// prepare finds the engine, removes what a killed run left, and makes the images.
func prepare(ctx context.Context) (*suite, error) {
	docker, err := client.New(client.FromEnv)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errNoEngine, err)
	}
	asked, cancel := context.WithTimeout(ctx, engineWait)
	defer cancel()
	if _, err := docker.Ping(asked, client.PingOptions{}); err != nil {
		return nil, fmt.Errorf("%w: %w", errNoEngine, err)
	}
	s := &suite{docker: docker}
	if s.lock, err = lockMachine(); err != nil {
		return nil, err
	}
	if left, err := s.sweep(ctx); err != nil {
		return nil, err
	} else if len(left) > 0 {
		fmt.Fprintf(os.Stderr, "removed what an earlier run left: %s\n", strings.Join(left, ", "))
	}
	s.sweepOnSignal()
	s.images, err = buildImages(ctx, docker, os.Stderr)
	return s, err
}

// lockMachine waits until no other run of the suite uses this machine. Two runs would remove
// each other's containers and compete for the processors. The end of the process releases the
// lock.
func lockMachine() (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(os.TempDir(), "trawl-cluster-tests.lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock the machine: %w", err)
	}
	fd := int(f.Fd())
	if syscall.Flock(fd, syscall.LOCK_EX|syscall.LOCK_NB) == nil {
		return f, nil
	}
	fmt.Fprintln(os.Stderr, "waiting for another run of these tests …")
	if err := syscall.Flock(fd, syscall.LOCK_EX); err != nil {
		return nil, errors.Join(fmt.Errorf("lock the machine: %w", err), f.Close())
	}
	return f, nil
}

// sweepOnSignal removes everything when the run is interrupted.
func (s *suite) sweepOnSignal() {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-signals
		_, _ = s.sweep(context.Background()) // the next run removes the rest
		os.Exit(130)
	}()
}

// sweep removes all containers, volumes and networks with the label and returns their names.
// It repeats until nothing is left, because the engine may still be removing something for a
// run that was killed during its own cleanup.
func (s *suite) sweep(ctx context.Context) (removed []string, err error) {
	ctx, cancel := context.WithTimeout(ctx, sweepTime)
	defer cancel()
	for {
		found, err := s.sweepOnce(ctx)
		if len(found) == 0 && err == nil {
			return removed, nil
		}
		for _, name := range found {
			if !slices.Contains(removed, name) {
				removed = append(removed, name)
			}
		}
		select {
		case <-ctx.Done():
			return removed, fmt.Errorf("remove what tests left: %w", errors.Join(ctx.Err(), err))
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// sweepOnce tries to remove everything with the label. The error says why something remains.
func (s *suite) sweepOnce(ctx context.Context) (found []string, err error) {
	labelled := client.Filters{}.Add("label", label)
	containers, err := s.docker.ContainerList(ctx, client.ContainerListOptions{All: true, Filters: labelled})
	if err != nil {
		return nil, fmt.Errorf("list containers: %w", err)
	}
	var errs []error
	for _, c := range containers.Items {
		found = append(found, "container "+strings.Join(c.Names, ","))
		errs = append(errs, s.remove(ctx, c.ID))
	}
	volumes, err := s.docker.VolumeList(ctx, client.VolumeListOptions{Filters: labelled})
	errs = append(errs, err)
	for _, v := range volumes.Items {
		found = append(found, "volume "+v.Name)
		_, err := s.docker.VolumeRemove(ctx, v.Name, client.VolumeRemoveOptions{Force: true})
		errs = append(errs, err)
	}
	networks, err := s.docker.NetworkList(ctx, client.NetworkListOptions{Filters: labelled})
	errs = append(errs, err)
	for _, n := range networks.Items {
		found = append(found, "network "+n.Name)
		_, err := s.docker.NetworkRemove(ctx, n.ID, client.NetworkRemoveOptions{})
		errs = append(errs, err)
	}
	return found, errors.Join(errs...)
}

// remove removes a container, paused or not, with its volumes.
func (s *suite) remove(ctx context.Context, id string) error {
	_, _ = s.docker.ContainerUnpause(ctx, id, client.ContainerUnpauseOptions{}) // most are not paused
	_, err := s.docker.ContainerRemove(ctx, id, client.ContainerRemoveOptions{Force: true, RemoveVolumes: true})
	return err
}
