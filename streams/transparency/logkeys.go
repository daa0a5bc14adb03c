package transparency

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"golang.org/x/mod/sumdb/note"
)

// LogKey is a key of a log, as those who verify its checkpoints know it.
type LogKey struct {
	note.Verifier
	// Until is the time at which the key retires. After it, the key's signature proves nothing, because the key may be in other
	// hands. A checkpoint that no other key has signed then counts only if the policy's quorum cosigned it before Until. The zero
	// time stands for a key that is not replaced.
	Until time.Time
}

const (
	// untilWord stands between a key in a list and its time.
	untilWord = "until"
	// timeLayout is the form in which the time is written. Any form of RFC 3339 is read.
	timeLayout = "2006-01-02T15:04:05.000000Z"
	// maxLogKeys bounds a list of keys.
	maxLogKeys = 256
)

// KeyLine returns the line of a list for a verifier key. A zero time stands for a key that is not replaced.
func KeyLine(key string, until time.Time) string {
	if until.IsZero() {
		return key + "\n"
	}
	return key + " " + untilWord + " " + until.UTC().Format(timeLayout) + "\n"
}

// ParseLogKeys reads a list of the keys of one log. Each line has a verifier key (c2sp.org/signed-note), and after the word until
// the time at which the key retires, if it does (RFC 3339). Lines that are empty or begin with # are ignored. Errors name the line.
func ParseLogKeys(text string) (keys []LogKey, err error) {
	number := 0
	for line := range strings.Lines(text) {
		number++
		fields := strings.Fields(line)
		if len(fields) == 0 || strings.HasPrefix(fields[0], "#") {
			continue
		}
		k, err := parseLogKey(fields)
		if err == nil && len(keys) > 0 {
			err = fits(k, keys)
		}
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", number, err)
		}
		keys = append(keys, k)
	}
	if len(keys) == 0 {
		return nil, errors.New("there is no verifier key")
	}
	return keys, nil
}

func parseLogKey(fields []string) (k LogKey, err error) {
	if len(fields) != 1 && (len(fields) != 3 || fields[1] != untilWord) {
		return k, errors.New("a line is KEY or KEY until TIME")
	}
	if k.Verifier, err = note.NewVerifier(fields[0]); err != nil {
		return k, fmt.Errorf("the key of the log: %w", err)
	}
	if len(fields) == 3 {
		if k.Until, err = time.Parse(time.RFC3339, fields[2]); err != nil {
			return k, fmt.Errorf("%.40q is not a time", fields[2])
		}
	}
	return k, nil
}

// fits returns an error if a key cannot be in a list with others.
func fits(k LogKey, others []LogKey) error {
	for _, o := range others {
		switch {
		case o.Name() != k.Name():
			return fmt.Errorf("the key is that of %s, and not of %s", k.Name(), o.Name())
		case o.KeyHash() == k.KeyHash():
			return errors.New("the key occurs a second time")
		}
	}
	if len(others) == maxLogKeys {
		return fmt.Errorf("a log has at most %d keys", maxLogKeys)
	}
	return nil
}
