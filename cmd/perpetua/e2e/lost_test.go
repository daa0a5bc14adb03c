package e2e

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/perpetua-exchange/perpetua/cmd/perpetua/settings"
	"github.com/perpetua-exchange/perpetua/cmd/perpetua/tools"
	"github.com/perpetua-exchange/perpetua/projections"
	"github.com/perpetua-exchange/perpetua/projections/projectiontest"
)

// loseLog makes the journals vanish behind the read models' back, while the venue is stopped.
func (v *venue) loseLog() {
	v.t.Helper()
	brokers := os.Getenv("KAFKA_BROKERS")
	if brokers == "" {
		if err := os.RemoveAll(filepath.Join(v.dir, "kafka")); err != nil {
			v.t.Fatal(err)
		}
		return
	}
	kc, err := kgo.NewClient(kgo.SeedBrokers(strings.Split(brokers, ",")...))
	if err != nil {
		v.t.Fatal(err)
	}
	defer kc.Close()
	admin := kadm.NewClient(kc)
	if _, err := admin.DeleteTopics(context.Background(), v.prefix+"identity", v.prefix+"trading", v.prefix+"onboarding"); err != nil {
		v.t.Fatal(err)
	}
	waitFor(v.t, "the topics to be gone", func() bool {
		topics, err := admin.ListTopics(context.Background(), v.prefix+"identity", v.prefix+"trading", v.prefix+"onboarding")
		return err == nil && topics[v.prefix+"identity"].Err != nil && topics[v.prefix+"trading"].Err != nil && topics[v.prefix+"onboarding"].Err != nil
	})
}

// digests returns what the tables of the stopped venue hold.
func (v *venue) digests() map[string]projections.Digest {
	v.t.Helper()
	s, err := settings.Parse("test", []string{"--data", v.dir, "--database-url", v.postgres}, settings.IO{Env: func(string) (string, bool) { return "", false }}, nil)
	if err != nil {
		v.t.Fatal(err)
	}
	pool, stop, err := tools.OpenReadModels(context.Background(), s)
	if err != nil {
		v.t.Fatal(err)
	}
	defer stop()
	return projectiontest.Digests(v.t, pool)
}

// TestLostLog takes the log away. The venue must notice from what its read models remember, refuse to begin a new log
// over them, and touch nothing, until the operator says that the old one is to be forgotten.
func TestLostLog(t *testing.T) {
	t.Parallel()
	v := newVenue(t)
	v.start()
	v.fund("10000", "ANNA")
	v.stop()
	before := v.digests()
	v.loseLog()

	v.launch()
	if code := v.ended(); code != exitFailed {
		t.Errorf("without its log, perpetua exits with %d, want %d:\n%s", code, exitFailed, v.output)
	}
	for _, want := range []string{"LOG_DIVERGED: journal ", " does not hold sequence ", "perpetua log restore", "perpetua admin forget-log --journal "} { // of whichever is found lost first
		if !strings.Contains(v.output.said(), want) {
			t.Errorf("without its log, perpetua does not say %s:\n%s", want, v.output)
		}
	}
	if after := v.digests(); !maps.Equal(before, after) {
		t.Errorf("the read models were touched:\nbefore %v\nafter  %v", before, after)
	}

	for _, journal := range []string{"identity", "trading", "onboarding"} {
		if out, err := v.command("admin", "forget-log", "--journal", journal).CombinedOutput(); err != nil {
			t.Fatalf("forget-log %s: %v\n%s", journal, err, out)
		}
	}
	v.start()
	defer v.stop()
	if a := v.do("broker-a", "GET", "/v1/customers/ANNA/orders", nil); a.Status != 404 {
		t.Errorf("the forgotten customer is answered %d: %s", a.Status, a.Body)
	}
	v.fund("10000", "ANNA")
}
