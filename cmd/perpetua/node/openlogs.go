package node

import (
	"slices"
	"strings"

	"github.com/perpetua-exchange/perpetua/cmd/perpetua/journals"
	"github.com/perpetua-exchange/perpetua/cmd/perpetua/settings"
)

// openLogs returns the journals with a transparency log that needs no token: trading, and those in the settings.
func openLogs(s *settings.Settings) []string {
	open := []string{journals.Trading}
	for name := range strings.SplitSeq(s.TLog.Open, ",") {
		if name != "" && !slices.Contains(open, name) {
			open = append(open, name)
		}
	}
	return open
}

// checkOpenLogs returns a usage error unless the settings name journals.
func checkOpenLogs(s *settings.Settings) error {
	for _, name := range openLogs(s) {
		if _, err := journals.All().Of(name); err != nil {
			return settings.Usagef("--tlog-open takes onboarding, identity, or both separated by a comma, not %q", s.TLog.Open)
		}
	}
	return nil
}
