package settings

import (
	"strconv"
	"strings"

	"github.com/perpetua-exchange/perpetua/domain/identity"
)

// PublicRateLimit returns how many requests a network may send without a valid token or API key: perSecond on average and burst in one
// instant. Both are 0 if requests are not limited. The error is a usage error.
func (s *Settings) PublicRateLimit() (perSecond, burst int64, err error) {
	if s.HTTP.PublicRate == "0" {
		return 0, 0, nil
	}
	first, second, _ := strings.Cut(s.HTTP.PublicRate, ":")
	perSecond, ok := rate(first)
	burst, okay := rate(second)
	if !ok || !okay {
		return 0, 0, Usagef("--public-rate-limit takes requests a second and at once, each from 1 to %d, like 50:200, or 0 for no limit, not %q", identity.MaxRate, s.HTTP.PublicRate)
	}
	return perSecond, burst, nil
}

// rate parses one number of a rate limit.
func rate(text string) (n int64, ok bool) {
	n, err := strconv.ParseInt(text, 10, 64)
	return n, err == nil && n >= 1 && n <= identity.MaxRate
}
