package e2e

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/perpetua-exchange/perpetua/streams/broker/kafkatest"
)

// doctorSays reports whether doctor said something of a check with a verdict, and a text in it.
func doctorSays(said, verdict, check, text string) bool {
	for l := range strings.Lines(said) {
		if strings.HasPrefix(l, verdict+" ") && strings.Contains(l, " "+check+" ") && strings.Contains(l, text) {
			return true
		}
	}
	return false
}

// TestDoctor examines a venue that is well, while it runs and while it is stopped, and then one thing after the other that is
// not.
func TestDoctor(t *testing.T) {
	t.Parallel()
	if os.Getenv("KAFKA_BROKERS") != "" {
		t.Skip("the log is not in files of ours")
	}
	v := newWholeVenue(t)
	v.start()
	v.fund("10000", "ANNA")
	v.must(200, "broker-a", "GET", annasOrders, nil, "X-Min-Log-Position", v.lastRecord("trading"))

	// While it runs, also as JSON.
	code, said := v.outcome(nil, "doctor")
	if code != exitDone || strings.Contains(said, "FAIL") {
		t.Errorf("doctor exits with %d for a venue that runs:\n%s", code, said)
	}
	for _, check := range []string{"postgres", "tables", "clock", "bucket", "topics", "journal trading", "journal identity",
		"journal onboarding", "read models trading", "fence", "disk", "key store"} {
		if !doctorSays(said, "ok  ", check, "") && !doctorSays(said, "warn", check, "GiB free") { // the disk of whoever runs the test may be short
			t.Errorf("doctor does not say that %s is well:\n%s", check, said)
		}
	}
	if !doctorSays(said, "note", "disk image", "cloned disk image is not detected") {
		t.Errorf("doctor does not say what is not detected:\n%s", said)
	}
	var report struct {
		Healthy  bool
		Findings []struct{ Check, Verdict, Message string }
	}
	code, object := v.outcome(nil, "doctor", "--json")
	if err := json.Unmarshal([]byte(object), &report); code != exitDone || err != nil || !report.Healthy || len(report.Findings) < 12 {
		t.Errorf("doctor --json exits with %d, %v:\n%s", code, err, object)
	}

	// A topic that would delete records.
	setRetention(t, v.Kafka, v.prefix+"trading", "1000")
	if code, said := v.outcome(nil, "doctor"); code != exitFailed || !doctorSays(said, "FAIL", "topics", `trading: retention.ms is "1000"`) {
		t.Errorf("doctor exits with %d for a topic that deletes:\n%s", code, said)
	}
	setRetention(t, v.Kafka, v.prefix+"trading", "-1")

	// While it is stopped: its own broker and Postgres are started for the examination.
	v.stop()
	code, said = v.outcome(nil, "doctor")
	if code != exitDone || strings.Contains(said, "FAIL") || !doctorSays(said, "ok  ", "witnesses trading", "1, the newest at") {
		t.Errorf("doctor exits with %d for a venue that is stopped:\n%s", code, said)
	}

	// Without the key store, which doctor must not make.
	keys := filepath.Join(v.dir, "keys")
	if err := os.Rename(keys, keys+"-away"); err != nil {
		t.Fatal(err)
	}
	code, said = v.outcome(nil, "doctor")
	if code != exitFailed || !doctorSays(said, "FAIL", "key store", "there is no folder") || !doctorSays(said, "FAIL", "bucket", "") {
		t.Errorf("doctor exits with %d without the key store:\n%s", code, said)
	}
	if err := os.Rename(keys+"-away", keys); err != nil { // fails if doctor has made a folder with something in it
		t.Fatal(err)
	}

	// A log that lost its last record.
	v.cutTradingLog()
	code, said = v.outcome(nil, "doctor")
	if code != exitFailed || !doctorSays(said, "FAIL", "journal trading", "LOG_DIVERGED") || !doctorSays(said, "ok  ", "journal identity", "") {
		t.Errorf("doctor exits with %d for a log that lost a record:\n%s", code, said)
	}
}

// TestDoctorWithoutBrokers examines what does not answer, and refuses what it does not understand.
func TestDoctorWithoutBrokers(t *testing.T) {
	t.Parallel()
	v := newVenue(t)
	none := []string{"PERPETUA_DATABASE_URL=postgres://127.0.0.1:1/none", "DATABASE_URL=", "KAFKA_BROKERS="}
	code, said := v.outcome(none, "doctor", "--kafka-brokers", "127.0.0.1:1", "--key-url", "file://"+filepath.ToSlash(t.TempDir()))
	if code != exitFailed || !doctorSays(said, "FAIL", "kafka", "127.0.0.1:1") || !doctorSays(said, "FAIL", "postgres", "") || !doctorSays(said, "ok  ", "key store", "") {
		t.Errorf("doctor exits with %d:\n%s", code, said)
	}
	if code, said := v.outcome(none, "doctor", "--nonsense"); code != exitUsage {
		t.Errorf("doctor --nonsense exits with %d:\n%s", code, said)
	}
}

// setRetention changes a topic behind the venue's back.
func setRetention(t *testing.T, brokers []string, topic, value string) {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(brokers...))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	answers, err := kadm.NewClient(client).AlterTopicConfigs(context.Background(), []kadm.AlterConfig{{Name: "retention.ms", Value: kadm.StringPtr(value)}}, topic)
	if err == nil {
		_, err = answers.On(topic, func(r *kadm.AlterConfigsResponse) error { return r.Err })
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestDoctorOnThreeBrokers examines a deployment before it goes live on a real Kafka of three nodes, whose settings are not
// all as recommended, and again when one of them has died.
func TestDoctorOnThreeBrokers(t *testing.T) {
	t.Parallel()
	if os.Getenv("KAFKA_BROKERS") == "" {
		t.Skip("run by make test-kafka")
	}
	settings := kafkatest.RecommendedTimings()
	settings["replica.lag.time.max.ms"], settings["controller.quorum.election.timeout.ms"] = "30000", "1000"
	c, err := kafkatest.StartCluster(t.Context(), kafkatest.ClusterConfig{Settings: settings, Log: t.Output()})
	if err != nil {
		t.Skip(err) // there is no Java
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	v := newVenue(t)
	keys := t.TempDir()
	deployment := []string{"--kafka-brokers", strings.Join(c.Brokers(), ","), "--key-url", "file://" + filepath.ToSlash(keys)}
	if code, said := v.outcome(nil, append([]string{"doctor"}, deployment...)...); code != exitFailed || !doctorSays(said, "FAIL", "topics", "there is no such topic") {
		t.Errorf("doctor exits with %d before the migration:\n%s", code, said)
	}
	if code, said := v.outcome(nil, append([]string{"migrate"}, deployment...)...); code != exitDone {
		t.Fatalf("migrate exits with %d:\n%s", code, said)
	}
	var said string
	waitForWord(t, "doctor to find the deployment well", func() string { // right after the migration a replica may still be on its way
		var code int
		if code, said = v.outcome(nil, append([]string{"doctor"}, deployment...)...); code != exitDone {
			return said
		}
		return ""
	})
	for _, node := range []string{"broker 1", "broker 2", "broker 3"} {
		if !doctorSays(said, "warn", node, "replica.lag.time.max.ms is 30000") || !doctorSays(said, "warn", node, "controller.quorum.election.timeout.ms is 1000") {
			t.Errorf("doctor does not see the settings of %s:\n%s", node, said)
		}
	}
	if !doctorSays(said, "ok  ", "replication", "all replicas in sync") || !doctorSays(said, "note", "journal trading", "no records yet") || strings.Contains(said, "controllers") {
		t.Errorf("doctor says of a deployment that is well:\n%s", said)
	}
	if err := c.Kill(3); err != nil {
		t.Fatal(err)
	}
	waitForWord(t, "doctor to miss a replica", func() string {
		code, said := v.outcome(nil, append([]string{"doctor"}, deployment...)...)
		if code == exitFailed && doctorSays(said, "FAIL", "replication", "has 2 of 3 replicas in sync") && doctorSays(said, "warn", "brokers", "2 instead of three") &&
			doctorSays(said, "FAIL", "broker 3", "is not registered") && !strings.Contains(said, "dedicated") {
			return ""
		}
		return said
	})
}
