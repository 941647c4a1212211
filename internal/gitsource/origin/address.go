package origin

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
)

// notPublic are the networks without public hosts that netip.Addr does not know by
// itself: those of the IANA special-purpose address registries for IPv4 and IPv6 that
// are not globally reachable.
var notPublic = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"),
	netip.MustParsePrefix("100.64.0.0/10"), // carrier-grade NAT; some clouds' metadata
	netip.MustParsePrefix("192.0.0.0/24"),
	netip.MustParsePrefix("192.0.2.0/24"),
	netip.MustParsePrefix("198.18.0.0/15"),
	netip.MustParsePrefix("198.51.100.0/24"),
	netip.MustParsePrefix("203.0.113.0/24"),
	netip.MustParsePrefix("240.0.0.0/4"),
	netip.MustParsePrefix("::/96"),
	netip.MustParsePrefix("64:ff9b:1::/48"),
	netip.MustParsePrefix("100::/64"),
	netip.MustParsePrefix("2001::/23"),
	netip.MustParsePrefix("2001:db8::/32"),
	netip.MustParsePrefix("fec0::/10"),
}

// metadata lists the cloud services that give credentials to every caller from a machine.
// No private network that is allowed includes them.
var metadata = []netip.Prefix{
	netip.MustParsePrefix("169.254.0.0/16"),     // most clouds, and containers of AWS
	netip.MustParsePrefix("168.63.129.16/32"),   // Azure's wire server; a public address
	netip.MustParsePrefix("100.100.100.200/32"), // Alibaba Cloud
	netip.MustParsePrefix("192.0.0.192/32"),     // Oracle Cloud
	netip.MustParsePrefix("fe80::/10"),
	netip.MustParsePrefix("fd00:ec2::/32"),          // AWS
	netip.MustParsePrefix("fd20:ce::254/128"),       // Google Cloud
	netip.MustParsePrefix("fd00:c1::a9fe:a9fe/128"), // Oracle Cloud
}

var (
	nat64      = netip.MustParsePrefix("64:ff9b::/96")
	localNAT64 = netip.MustParsePrefix("64:ff9b:1::/48")
	compatible = netip.MustParsePrefix("::/96")
	sixToV4    = netip.MustParsePrefix("2002::/16")
)

// checkAddress reports whether the policy forbids to connect to a port of an address.
func (p Policy) checkAddress(addr netip.Addr, port string) error {
	addr = addr.WithZone("").Unmap()
	if isMetadata(addr) {
		return broken(RulePrivateAddress, "the address %s is one of a cloud's metadata services, which are never allowed", addr)
	}
	if public(addr) {
		return nil
	}
	for _, n := range p.PrivateNetworks {
		if prefix, only, err := parseNetwork(n); err == nil && prefix.Contains(addr) && (only == "" || only == port) {
			return nil
		}
	}
	return broken(RulePrivateAddress, "the address %s with port %s is private; --source-private-networks allows: %s", addr, port, orNone(p.PrivateNetworks))
}

// parseNetwork reads an entry of PrivateNetworks: NETWORK, NETWORK:PORT, or
// [NETWORK]:PORT for IPv6. The port is "" if all are allowed.
func parseNetwork(entry string) (prefix netip.Prefix, port string, err error) {
	if prefix, err = netip.ParsePrefix(entry); err == nil {
		return prefix, "", nil
	}
	network, port, err := net.SplitHostPort(entry)
	if err != nil {
		return prefix, "", err
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 || strconv.FormatUint(n, 10) != port {
		return prefix, "", fmt.Errorf("port %q", port)
	}
	prefix, err = netip.ParsePrefix(network)
	return prefix, port, err
}

// isMetadata reports whether an unmapped address leads to a metadata service.
func isMetadata(addr netip.Addr) bool {
	if inner, ok := embedded(addr); ok && isMetadata(inner) {
		return true
	}
	return slices.ContainsFunc(metadata, func(n netip.Prefix) bool { return n.Contains(addr) })
}

// public reports whether an unmapped address is one of the public Internet.
func public(addr netip.Addr) bool {
	if !addr.IsGlobalUnicast() || addr.IsPrivate() || slices.ContainsFunc(notPublic, func(n netip.Prefix) bool { return n.Contains(addr) }) {
		return false
	}
	if inner, ok := embedded(addr); ok {
		return public(inner)
	}
	return true
}

// embedded returns the IPv4 address that a translated IPv6 address leads to.
func embedded(addr netip.Addr) (netip.Addr, bool) {
	b := addr.As16()
	switch {
	case addr.Is4():
		return netip.Addr{}, false
	case nat64.Contains(addr), localNAT64.Contains(addr), compatible.Contains(addr):
		return netip.AddrFrom4([4]byte(b[12:16])), true
	case sixToV4.Contains(addr):
		return netip.AddrFrom4([4]byte(b[2:6])), true
	}
	return netip.Addr{}, false
}

// Resolve is CheckURL followed by a look-up of the host. The error is a *RuleError if
// none of its addresses is allowed. A host that cannot be resolved is no error: it
// may resolve when the fetch begins, and otherwise the fetch fails.
func (p Policy) Resolve(ctx context.Context, raw string) error {
	remote, err := Parse(raw)
	if err != nil {
		return err
	}
	if err := p.Check(remote); err != nil || remote.Scheme == SchemeFile {
		return err
	}
	_, err = p.AllowedAddress(ctx, remote.Host, remote.DialPort())
	if rule, ok := errors.AsType[*RuleError](err); ok {
		return rule
	}
	return context.Cause(ctx)
}

// AllowedAddress looks a host up and returns the first address that may be connected to
// at a port. The error is a *RuleError if the host has no such address. The caller must
// connect to that address and not look the name up again, since the answer may change.
func (p Policy) AllowedAddress(ctx context.Context, host, port string) (netip.Addr, error) {
	addrs, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return netip.Addr{}, fmt.Errorf("looking up %s: %w", host, err)
	}
	err = fmt.Errorf("looking up %s: no address", host)
	canary, unparsed := Parse(p.Canary)
	exempt := unparsed == nil && canary.Host == host && canary.DialPort() == port
	for _, a := range addrs {
		if err = p.checkAddress(a, port); err == nil || exempt && !isMetadata(a.WithZone("").Unmap()) {
			return a.Unmap(), nil
		}
	}
	return netip.Addr{}, err
}
