package settings

import (
	"testing"
	"time"
)

func TestPublicDataAge(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	for _, c := range []struct {
		text  string
		age   time.Duration
		made  bool
		valid bool
	}{
		{"forever", 0, true, true}, {"off", 0, false, true}, {"400d", 400 * day, true, true}, {"48h", 2 * day, true, true}, {"1d", day, true, true},
		{"0", 0, false, false}, {"23h", 0, false, false}, {"-1d", 0, false, false}, {"", 0, false, false}, {"on", 0, false, false},
		{"999999999999d", 0, false, false},
	} {
		var s Settings
		s.Archive.PublicData = c.text
		age, made, err := s.PublicDataAge()
		if age != c.age || made != c.made || (err == nil) != c.valid {
			t.Errorf("%q: %v, %v, %v", c.text, age, made, err)
		}
	}
}

func TestTilesAge(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Duration{"forever": 0, "90d": 90 * leastAge, "24h": leastAge, "23h": -1, "0": -1, "off": -1, "": -1} {
		var s Settings
		s.TLog.Tiles = text
		if age, err := s.TilesAge(); (err == nil) != (want >= 0) || err == nil && age != want {
			t.Errorf("%q: %v, %v", text, age, err)
		}
	}
}
