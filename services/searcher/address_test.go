package searcher

import (
	"os"
	"testing"
)

func TestReachable(t *testing.T) {
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	for listening, want := range map[string]string{
		"127.0.0.1:7440": "127.0.0.1:7440",
		"10.1.2.3:1":     "10.1.2.3:1",
		"0.0.0.0:7440":   host + ":7440",
		"[::]:7440":      host + ":7440",
	} {
		if got := reachable(listening); got != want {
			t.Errorf("listening on %s is called at %s, want %s", listening, got, want)
		}
	}
}
