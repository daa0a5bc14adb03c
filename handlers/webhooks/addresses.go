package webhooks

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// special are the networks, inside of what is otherwise given out to the public, that no receiver may be in: IANA's registries
// of special-purpose addresses, with what stands for an IPv4 address in IPv6 (6to4, Teredo), which may lead anywhere.
var special = networks("0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24",
	"192.0.2.0/24", "192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/3",
	"2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20")

// public holds all IPv6 addresses that are given out to the public. Loopback, link-local, unique local, multicast, mapped and
// translated (NAT64) ones are outside of it.
var public = netip.MustParsePrefix("2000::/3")

func networks(list ...string) []netip.Prefix {
	out := make([]netip.Prefix, len(list))
	for i, text := range list {
		out[i] = netip.MustParsePrefix(text)
	}
	return out
}

// ParseNetworks reads networks like 10.0.0.0/8, separated by commas.
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

// ForbiddenAddressError says that a receiver's name stands for an address that nothing is sent to.
type ForbiddenAddressError struct{ Address netip.Addr }

// Error does not name the address: the tenant reads it, and what a name stands for inside of the network is not the tenant's to
// know.
func (*ForbiddenAddressError) Error() string { return "the address is not a public one" }

// check returns a *ForbiddenAddressError for an address that nothing is sent to. The networks allowed come first.
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
