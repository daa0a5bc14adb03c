package live

import (
	"testing"

	"github.com/perpetua-exchange/perpetua/handlers/web/access"
)

// TestReaders: the addresses of an IPv6 network are one reader of the log, and each user is another one.
func TestReaders(t *testing.T) {
	anna := &access.Principal{Broker: "alpha", Username: "anna"}
	for _, test := range []struct {
		who, other         *access.Principal
		address, elsewhere string
		same               bool
	}{
		{nil, nil, "2001:db8::1", "2001:db8::2", true},
		{nil, nil, "2001:db8::1", "2001:db8:0:1::1", false},
		{nil, nil, "192.0.2.1", "::ffff:192.0.2.1", true},
		{nil, nil, "192.0.2.1", "192.0.2.2", false},
		{anna, anna, "192.0.2.1", "192.0.2.2", true},
		{anna, nil, "192.0.2.1", "192.0.2.1", false},
		{anna, &access.Principal{Broker: "alpha", Username: "ben"}, "192.0.2.1", "192.0.2.1", false},
	} {
		if one, other := readerOf(test.who, test.address), readerOf(test.other, test.elsewhere); (one == other) != test.same {
			t.Errorf("%s and %s, want the same: %v", one, other, test.same)
		}
	}
}
