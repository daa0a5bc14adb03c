package settings

import (
	"encoding/base64"
	"os"
	"strings"

	"github.com/perpetua-exchange/perpetua/streams/seal"
)

// ReadKey reads a key from the file that a flag names: seal.KeySize bytes in base64. Such a key seals an archive
// for a reader outside of the venue, in place of the master key. The error is a usage error.
func ReadKey(flag, path string) (*seal.Box, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, Usagef("--%s: %v", flag, err)
	}
	key, err := base64.StdEncoding.DecodeString(strings.TrimSpace(string(text)))
	if err != nil {
		return nil, Usagef("--%s: %s: %v", flag, path, err)
	}
	box, err := seal.New(key)
	if err != nil {
		return nil, Usagef("--%s: %s: %d bytes are needed, in base64, and it has %d", flag, path, seal.KeySize, len(key))
	}
	return box, nil
}
