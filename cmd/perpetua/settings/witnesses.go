package settings

import (
	"os"

	"github.com/perpetua-exchange/perpetua/streams/transparency"
)

// Witnesses returns the policy of the witnesses of the transparency logs, or nil if there are none.
func (s *Settings) Witnesses() (*transparency.Policy, error) {
	if s.TLog.Policy == "" {
		return nil, nil
	}
	return ReadPolicy("--witness-policy", s.TLog.Policy)
}

// ReadPolicy reads the policy in a file that a flag names.
func ReadPolicy(flag, path string) (*transparency.Policy, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, Usagef("%s: %v", flag, err)
	}
	p, err := transparency.ParsePolicy(text)
	if err != nil {
		return nil, Usagef("%s: %s: %v", flag, path, err)
	}
	return p, nil
}
