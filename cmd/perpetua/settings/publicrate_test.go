package settings

import (
	"strings"
	"testing"

	"github.com/perpetua-exchange/perpetua/domain/identity"
)

func TestPublicRateLimit(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]struct {
		perSecond, burst int64
		valid            bool
	}{
		"50:200": {50, 200, true}, "200:50": {200, 50, true}, "1:1": {1, 1, true}, "1000000:1000000": {identity.MaxRate, identity.MaxRate, true}, "0": {0, 0, true},
		"": {}, "50": {}, "50:": {}, ":200": {}, "50:0": {}, "0:200": {}, "0:0": {}, "-1:5": {}, "50:200:1": {}, "50,200": {}, "1000001:1": {}, "1:1000001": {},
		"0.5:10": {}, " 50:200": {}, "off": {}, "99999999999999999999:1": {},
	} {
		var s Settings
		s.HTTP.PublicRate = text
		perSecond, burst, err := s.PublicRateLimit()
		if perSecond != want.perSecond || burst != want.burst || (err == nil) != want.valid {
			t.Errorf("%q: %d, %d, %v", text, perSecond, burst, err)
		}
		if err != nil && !strings.Contains(err.Error(), "each from 1 to 1000000, like 50:200, or 0 for no limit") {
			t.Errorf("%q: %v", text, err)
		}
	}
}
