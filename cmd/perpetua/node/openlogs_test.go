package node

import (
	"slices"
	"testing"

	"github.com/perpetua-exchange/perpetua/cmd/perpetua/settings"
)

func TestOpenLogs(t *testing.T) {
	for text, want := range map[string][]string{
		"":                    {"trading"},
		"onboarding":          {"trading", "onboarding"},
		"identity,onboarding": {"trading", "identity", "onboarding"},
		"trading,trading":     {"trading"},
		"onboarding, x":       nil,
		"orders":              nil,
	} {
		s := new(settings.Settings)
		s.TLog.Open = text
		if err := checkOpenLogs(s); err == nil != (want != nil) {
			t.Errorf("%q: %v", text, err)
		}
		if got := openLogs(s); want != nil && !slices.Equal(got, want) {
			t.Errorf("%q opens %v", text, got)
		}
	}
}
