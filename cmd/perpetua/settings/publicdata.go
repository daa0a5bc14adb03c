package settings

import "time"

const (
	forever  = "forever"
	leastAge = 24 * time.Hour
)

// PublicDataPrefix returns the prefix of the keys of the daily files, in the bucket of --blob-url. It ends with a slash. Venues that share
// a bucket have topics with different prefixes, and so different folders.
func (s *Settings) PublicDataPrefix() string { return withSlash("data/" + s.Kafka.Prefix) }

// PublicDataAge returns the age from which daily files are dropped, or 0 for never. made is false if no files are made. The error is a usage
// error.
func (s *Settings) PublicDataAge() (age time.Duration, made bool, err error) {
	switch s.Archive.PublicData {
	case "off":
		return 0, false, nil
	case forever:
		return 0, true, nil
	}
	if age, ok := parseAge(s.Archive.PublicData); ok && age >= leastAge {
		return age, true, nil
	}
	return 0, false, Usagef("--public-data takes days or a time of a day or more, like 400d or 9600h, forever, or off, not %q", s.Archive.PublicData)
}

// TilesAge returns the age from which the leaves of transparency logs are deleted, or 0 for never. The error is a usage error.
func (s *Settings) TilesAge() (time.Duration, error) {
	if s.TLog.Tiles == forever {
		return 0, nil
	}
	if age, ok := parseAge(s.TLog.Tiles); ok && age >= leastAge {
		return age, nil
	}
	return 0, Usagef("--tlog-tiles takes days or a time of a day or more, like 90d or 2160h, or forever, not %q", s.TLog.Tiles)
}
