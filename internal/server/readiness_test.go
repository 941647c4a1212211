package server_test

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/trawl-search/trawl/internal/server"
	"github.com/trawl-search/trawl/internal/telemetry"
)

// TestConditionsAreLogged: the log says why a process is not ready, but does not
// repeat a reason that changes all the time.
func TestConditionsAreLogged(t *testing.T) {
	var log bytes.Buffer
	var logs telemetry.Config
	logs.SetDefaults()
	tel, err := telemetry.Start(t.Context(), logs, telemetry.Identity{Service: "test", Version: "test"}, telemetry.WithLogs(&log))
	if err != nil {
		t.Fatal(err)
	}
	defer tel.Shutdown(context.Background())
	var cfg server.Config
	cfg.SetDefaults()
	s, err := server.New(cfg, tel)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	synctest.Test(t, func(*testing.T) {
		shards := s.Readiness().Condition("shards")
		shards.Unmet("1 of 3")
		shards.Unmet("2 of 3")
		time.Sleep(time.Minute)
		shards.Unmet("2 of 3")
		shards.Unmet("2 of 4")
		shards.Met()
		shards.Met()
		shards.Unmet("3 of 5")
	})
	var told []string
	for line := range strings.Lines(log.String()) {
		if strings.Contains(line, `"shards"`) {
			_, reason, _ := strings.Cut(line, `"reason":"`)
			reason, _, _ = strings.Cut(reason, `"`)
			told = append(told, reason)
		}
	}
	if got := strings.Join(told, ", "); got != "1 of 3, 2 of 4, , 3 of 5" {
		t.Errorf("told %q in\n%s", got, log.String())
	}
}
