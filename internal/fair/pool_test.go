package fair_test

import (
	"fmt"
	"testing"

	"github.com/trawl-search/trawl/internal/fair"
)

// TestGreedyCallersLeaveRoom: whatever the number of greedy callers is, others get as much
// as each of them, and a pool never gives more than it has.
func TestGreedyCallersLeaveRoom(t *testing.T) {
	const most = 1200
	for greedy := 1; greedy <= 12; greedy++ {
		p := fair.NewPool(most)
		held := make(map[string]int64)
		for again := true; again; {
			again = false
			for i := range greedy {
				if who := fmt.Sprint(i); p.Take(who, 1) {
					held[who]++
					again = true
				}
			}
		}
		free := most - p.Taken()
		for who, n := range held {
			if n > free || n > most/2 {
				t.Errorf("%d greedy callers: %s has %d, and %d are left", greedy, who, n, free)
			}
			p.Give(who, n)
		}
		if free < most/int64(greedy+2) {
			t.Errorf("%d greedy callers leave %d of %d", greedy, free, most)
		}
		if p.Taken() != 0 {
			t.Errorf("%d are taken, and all were given back", p.Taken())
		}
	}
	if p := fair.NewPool(most); p.Take("large", most/2+1) || !p.Take("large", most/2) || !p.Take("late", most/4) || p.Take("late", 1) {
		t.Error("callers get other shares than what they leave")
	}
}

// TestNetwork: hosts are told apart, the addresses of one host are not.
func TestNetwork(t *testing.T) {
	for address, want := range map[string]string{
		"192.0.2.1:80": "192.0.2.1", "[::ffff:192.0.2.1]:80": "192.0.2.1", "[2001:db8:1:2:3::4]:1": "2001:db8:1:2::/64",
		"[fe80::1%eth0]:1": "fe80::/64", "local": "", "": "",
	} {
		if got := fair.Network(address); got != want {
			t.Errorf("%s: %q, want %q", address, got, want)
		}
	}
}
