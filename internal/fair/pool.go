// Package fair divides what callers share, so that no caller can take all of it.
package fair

import (
	"net/netip"
	"sync"
)

// Pool divides a number of units among callers. A caller may take units while at least as
// many stay free as it then holds. One greedy caller therefore gets half of the pool, n of
// them get 1/(n+1) each, and as much stays free for everybody else: the dynamic thresholds
// of Choudhury and Hahne, 1998. A pool is safe for concurrent use.
type Pool struct {
	most int64

	mu    sync.Mutex
	taken int64
	of    map[string]int64
}

// NewPool returns a pool of that many units.
func NewPool(most int64) *Pool { return &Pool{most: most, of: make(map[string]int64)} }

// Take takes n units for a caller, who must give them back. It takes nothing and returns
// false if the caller would hold more than is left.
func (p *Pool) Take(caller string, n int64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.of[caller]+n > p.most-p.taken-n {
		return false
	}
	p.taken += n
	p.of[caller] += n
	return true
}

// Give gives back n units that a caller has taken.
func (p *Pool) Give(caller string, n int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.taken -= n
	if p.of[caller] -= n; p.of[caller] == 0 {
		delete(p.of, caller)
	}
}

// Taken is the number of units that all callers hold.
func (p *Pool) Taken() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.taken
}

// Network names the caller at an address of the form IP:PORT: the IPv4 address or the IPv6
// /64, which one host usually has. All other addresses are one caller.
func Network(address string) string {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return ""
	}
	ip := at.Addr().Unmap().WithZone("")
	if ip.Is4() {
		return ip.String()
	}
	return netip.PrefixFrom(ip, 64).Masked().String()
}
