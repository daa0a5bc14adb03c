package journaltest

import (
	"fmt"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/perpetua-exchange/perpetua/streams/journal"
)

// NewClient returns a client with new topics for the journals. It uses the brokers in KAFKA_BROKERS, or else starts a
// broker for the duration of the test. If TEST_LOG is set, the client's log is shown.
func NewClient(t testing.TB, journals ...string) *journal.Client {
	t.Helper()
	return Connect(t, journal.Config{}, journals...)
}

// Connect is NewClient with settings. It sets the brokers, the prefix and the logger itself.
func Connect(t testing.TB, cfg journal.Config, journals ...string) *journal.Client {
	t.Helper()
	var brokers []string
	if env := os.Getenv("KAFKA_BROKERS"); env != "" {
		brokers = strings.Split(env, ",")
	} else {
		fake, err := kfake.NewCluster(kfake.NumBrokers(1))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(fake.Close)
		brokers = fake.ListenAddrs()
	}
	cfg.Brokers, cfg.Prefix, cfg.Logger = brokers, fmt.Sprintf("t%d-", time.Now().UnixNano()), slog.New(slog.DiscardHandler)
	if os.Getenv("TEST_LOG") != "" {
		cfg.Logger = slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelDebug}))
	}
	c, err := journal.NewClient(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	if err := c.EnsureTopics(t.Context(), journals...); err != nil {
		t.Fatal(err)
	}
	return c
}
