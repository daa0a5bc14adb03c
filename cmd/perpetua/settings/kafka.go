package settings

import (
	"crypto/tls"
	"crypto/x509"
	"os"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"
)

// Embedded returns the settings without those for connections to Kafka, which an embedded broker does not use.
func (s *Settings) Embedded() *Settings {
	e := *s
	k := &e.Kafka
	k.TLS, k.CA, k.SASL, k.User, k.Password = false, "", "", "", ""
	return &e
}

// KafkaTLSConfig returns the TLS configuration of connections to Kafka, or nil if they are not encrypted.
func (s *Settings) KafkaTLSConfig() (*tls.Config, error) {
	if !s.Kafka.TLS {
		return nil, nil
	}
	return trusting("--kafka-ca-file", s.Kafka.CA)
}

// trusting returns the TLS configuration of a client that trusts the authorities in a file, or the system's if file is empty.
func trusting(flag, file string) (*tls.Config, error) {
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if file == "" {
		return c, nil
	}
	pem, err := os.ReadFile(file)
	if err != nil {
		return nil, Usagef("%s: %v", flag, err)
	}
	c.RootCAs = x509.NewCertPool()
	if !c.RootCAs.AppendCertsFromPEM(pem) {
		return nil, Usagef("%s: no certificate in %s", flag, file)
	}
	return c, nil
}

// KafkaOptions returns the options with which a client authenticates to Kafka.
func (s *Settings) KafkaOptions() ([]kgo.Opt, error) {
	var opts []kgo.Opt
	switch s.Kafka.SASL {
	case "":
	case "plain":
		opts = append(opts, kgo.SASL(plain.Auth{User: s.Kafka.User, Pass: s.Kafka.Password}.AsMechanism()))
	case "scram-sha-256":
		opts = append(opts, kgo.SASL(scram.Auth{User: s.Kafka.User, Pass: s.Kafka.Password}.AsSha256Mechanism()))
	case "scram-sha-512":
		opts = append(opts, kgo.SASL(scram.Auth{User: s.Kafka.User, Pass: s.Kafka.Password}.AsSha512Mechanism()))
	default:
		return nil, Usagef("--kafka-sasl takes plain, scram-sha-256 or scram-sha-512, not %q", s.Kafka.SASL)
	}
	return opts, nil
}
