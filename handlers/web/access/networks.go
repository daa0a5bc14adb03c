package access

import (
	"net/http"
	"net/netip"
	"time"
)

// maxNetworks is the maximum number of networks with separate buckets. Further networks share a bucket.
const maxNetworks = 100_000

// Networks limits requests without a valid token or API key, by the network of the client. Requests from a loopback address are not
// limited. The nil Networks limits nothing.
type Networks struct {
	limit  RateLimit
	limits *limits
}

// NewNetworks returns the limits of networks, each perSecond requests on average and burst in one instant. It returns nil if either
// is 0.
func NewNetworks(perSecond, burst int64, now func() time.Time) *Networks {
	limit := RateLimit{PerSecond: perSecond, Burst: burst, Network: true}
	if !limit.enabled() {
		return nil
	}
	return &Networks{limit: limit, limits: newLimits(now, maxNetworks)}
}

// Take counts a request from an address towards the limit of the network and returns that limit. If the limit is exhausted, it sets
// the RateLimit headers in h, which may be nil, and returns a 429.
func (n *Networks) Take(h http.Header, address string) (RateLimit, error) {
	network, limited := n.Of(address)
	if !limited {
		return RateLimit{}, nil
	}
	return n.limit, n.limits.take(h, bucketName{network: network}, n.limit, true)
}

// Of returns the network of an address, and whether requests from it are limited.
func (n *Networks) Of(address string) (_ netip.Prefix, limited bool) {
	if n == nil {
		return netip.Prefix{}, false
	}
	network := NetworkOf(address)
	return network, !network.Addr().IsLoopback()
}

// NetworkOf returns the network that identifies the client at an address: an IPv4 address, or the /64 network of an IPv6 address,
// because a client with one IPv6 address usually controls the /64. It is the zero Prefix for a text that is not an address.
func NetworkOf(address string) netip.Prefix {
	ip, err := netip.ParseAddr(address)
	if err != nil {
		return netip.Prefix{}
	}
	ip = ip.Unmap().WithZone("")
	bits := ip.BitLen()
	if ip.Is6() && !ip.IsLoopback() {
		bits = 64
	}
	network, _ := ip.Prefix(bits) // an error would mean that bits is out of range
	return network
}
