package webhooks

import (
	"net/netip"
	"testing"
)

// TestAddresses: nothing is sent to an address that is not a public one, in whichever form it is written.
func TestAddresses(t *testing.T) {
	for _, c := range []struct {
		open   bool
		listed []string
	}{
		{true, []string{"8.8.8.8", "1.1.1.1", "93.184.215.14", "172.15.255.255", "172.32.0.0", "100.63.255.255", "100.128.0.0", "198.17.255.255",
			"223.255.255.255", "2606:4700:4700::1111", "2a00:1450:4001:82b::200e", "2001:200::1"}},
		{false, []string{
			"0.0.0.0", "0.1.2.3", "10.0.0.1", "100.64.0.1", "100.127.255.255", "127.0.0.1", "127.255.255.254", "169.254.169.254",
			"172.16.0.1", "172.31.255.255", "192.0.0.1", "192.0.2.1", "192.88.99.1", "192.168.1.1", "198.18.0.1", "198.19.255.255", "198.51.100.7",
			"203.0.113.9", "224.0.0.1", "239.255.255.255", "240.0.0.1", "255.255.255.255",
			"::", "::1", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "::ffff:8.8.8.8", "::127.0.0.1", "64:ff9b::a00:1", "64:ff9b::808:808", "64:ff9b:1::1",
			"100::1", "2001::1", "2001:db8::1", "2002:a00:1::1", "2002:808:808::1", "3fff::1", "5f00::1", "fc00::1", "fd00:ec2::254", "fe80::1",
			"fe80::1%eth0", "2606:4700:4700::1111%eth0", "fec0::1", "ff02::1", "4000::1"}},
	} {
		for _, text := range c.listed {
			if err := check(netip.MustParseAddr(text), nil); (err == nil) != c.open {
				t.Errorf("%s: %v", text, err)
			}
		}
	}
}

// TestAllowedNetworks are sent to although they are not public, and no others with them.
func TestAllowedNetworks(t *testing.T) {
	allowed, err := ParseNetworks(" 127.0.0.0/8 ,10.1.2.3/16, fd00::/8,")
	if err != nil || len(allowed) != 3 {
		t.Fatalf("%v, %v", allowed, err)
	}
	for text, open := range map[string]bool{"127.0.0.1": true, "::ffff:127.0.0.1": true, "10.1.255.255": true, "10.2.0.0": false, "fd12::1": true,
		"fc12::1": false, "::1": false, "fd12::1%eth0": false, "8.8.8.8": true} {
		if err := check(netip.MustParseAddr(text), allowed); (err == nil) != open {
			t.Errorf("%s: %v", text, err)
		}
	}
	for _, bad := range []string{"127.0.0.1", "localhost/8", "10.0.0.0/33", "10.0.0.0/8;127.0.0.0/8"} {
		if got, err := ParseNetworks(bad); err == nil {
			t.Errorf("%q is read as %v", bad, got)
		}
	}
}
