package settings

import (
	"net/url"
	"regexp"

	"github.com/jackc/pgx/v5/pgconn"
)

// maxPrefix is the longest topic prefix: Kafka limits the name of a topic to 249 characters.
const maxPrefix = 200

var topicPrefix = regexp.MustCompile(`^[a-zA-Z0-9._-]*$`)

// CheckKafka validates the text of the settings for Kafka that no other function reads.
func (s *Settings) CheckKafka() error {
	k := &s.Kafka
	switch {
	case k.SASL != "" && (k.User == "" || k.Password == ""):
		return Usagef("--kafka-sasl %s needs --kafka-user and --kafka-password", k.SASL)
	case !topicPrefix.MatchString(k.Prefix) || len(k.Prefix) > maxPrefix:
		return Usagef("--topic-prefix takes letters, digits, and the characters ._-, up to %d in all, not %q", maxPrefix, k.Prefix)
	}
	return nil
}

// CheckDatabase validates the text of the URL of Postgres. The error has no password.
func (s *Settings) CheckDatabase() error {
	if s.DatabaseURL == "" {
		return nil
	}
	if _, err := pgconn.ParseConfig(s.DatabaseURL); err != nil {
		return Usagef("--database-url takes a URL like postgres://user:password@host/database: %v", err)
	}
	return nil
}

// Doubtful returns the settings that are not what they seem to be, although a node can start with them. Nodes warn of them and do not
// refuse them, because a deployment may have run with them for long.
func (s *Settings) Doubtful() (doubts []error) {
	if s.Kafka.CA != "" && !s.Kafka.TLS {
		doubts = append(doubts, Usagef("--kafka-ca-file needs --kafka-tls: without it, connections are not encrypted"))
	}
	if _, ok := webURL(s.HTTP.Advertise); s.HTTP.Advertise != "" && !ok {
		doubts = append(doubts, Usagef("--advertise takes a URL like http://10.0.0.5:8080, not %q", s.HTTP.Advertise))
	}
	for _, o := range s.CORSOrigins() {
		if o != "*" && o != "null" && !origin.MatchString(o) {
			doubts = append(doubts, Usagef("--cors-origins takes origins like https://app.example, separated by commas, not %q", o))
		}
	}
	return doubts
}

// origin matches the origins that browsers send: a scheme, a host, and perhaps a port, without a path and capital letters. * and ?
// stand for other characters. Pages of applications have other schemes.
var origin = regexp.MustCompile(`^[a-z*?][a-z0-9+.*?-]*://[^/\\\s#@A-Z]+$`)

// webURL returns the parsed URL of a web server. It is false for any other text.
func webURL(text string) (*url.URL, bool) {
	u, err := url.Parse(text)
	return u, err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Hostname() != ""
}
