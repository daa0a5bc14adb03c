package webhooks

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// special lists the networks within the public address space in which no receiver may be: those in IANA's registries
// of special-purpose addresses, and the IPv6 networks that encapsulate IPv4 addresses (6to4, Teredo), which may lead
// anywhere.
var special = networks("0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24",
	"192.0.2.0/24", "192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/3",
	"2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20")

// public contains all public IPv6 addresses. It excludes loopback, link-local, unique local, multicast, mapped and
// translated (NAT64) addresses.
var public = netip.MustParsePrefix("2000::/3")

func networks(list ...string) []netip.Prefix {
	out := make([]netip.Prefix, len(list))
	for i, text := range list {
		out[i] = netip.MustParsePrefix(text)
	}
	return out
}

// ParseNetworks parses networks like 10.0.0.0/8, separated by commas.
func ParseNetworks(list string) ([]netip.Prefix, error) {
	var out []netip.Prefix
	for _, text := range strings.Split(list, ",") {
		if text = strings.TrimSpace(text); text == "" {
			continue
		}
		p, err := netip.ParsePrefix(text)
		if err != nil {
			return nil, fmt.Errorf("%q is not a network like 10.0.0.0/8", text)
		}
		out = append(out, p.Masked())
	}
	return out, nil
}

// ForbiddenAddressError means that a receiver's name resolved to an address that must not be contacted.
type ForbiddenAddressError struct{ Address netip.Addr }

// Error does not contain the address, because the tenant reads the message and must not learn how names resolve in
// the internal network.
func (*ForbiddenAddressError) Error() string { return "the address is not a public one" }

// check returns a *ForbiddenAddressError for an address that must not be contacted. The allowed networks take
// precedence.
func check(a netip.Addr, allowed []netip.Prefix) error {
	within := func(p netip.Prefix) bool { return p.Contains(a) }
	switch {
	case a.Zone() != "":
	case slices.ContainsFunc(allowed, within), slices.ContainsFunc(allowed, func(p netip.Prefix) bool { return p.Contains(a.Unmap()) }):
		return nil
	case a.Is4() && !slices.ContainsFunc(special, within):
		return nil
	case public.Contains(a) && !slices.ContainsFunc(special, within):
		return nil
	}
	return &ForbiddenAddressError{a}
}
