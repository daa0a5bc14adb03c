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
	case k.CA != "" && !k.TLS:
		return Usagef("--kafka-ca-file needs --kafka-tls: without it, connections are not encrypted")
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

// CheckOrigins validates the origins of pages. A browser sends a scheme, a host, and perhaps a port.
func (s *Settings) CheckOrigins() error {
	for _, origin := range s.CORSOrigins() {
		if origin != "*" && !isOrigin(origin) {
			return Usagef("--cors-origins takes origins like https://app.example, separated by commas, not %q", origin)
		}
	}
	return nil
}

// isOrigin reports whether a text is the URL of a web server without a path.
func isOrigin(text string) bool {
	u, ok := webURL(text)
	return ok && text == u.Scheme+"://"+u.Host
}

// webURL returns the parsed URL of a web server. It is false for any other text.
func webURL(text string) (*url.URL, bool) {
	u, err := url.Parse(text)
	return u, err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Hostname() != ""
}
