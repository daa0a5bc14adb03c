package node

import (
	"fmt"
	"net"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/perpetua-exchange/perpetua/cmd/perpetua/journals"
)

// TestANodeWatchesItsTopics, whatever its roles: retention that somebody sets while a node runs raises an alarm of each journal.
func TestANodeWatchesItsTopics(t *testing.T) {
	b := newBench(t, journals.All())
	fake, err := kfake.NewCluster(kfake.NumBrokers(1)) // the settings of the embedded broker can't be changed from outside
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(fake.Close)
	b.config.Brokers, b.config.Dial = fake.ListenAddrs(), new(net.Dialer).DialContext
	client, err := b.config.Settings.NewClient(b.config.Brokers, b.config.Logger)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if err := client.EnsureTopics(t.Context(), journals.All().Names()...); err != nil {
		t.Fatal(err)
	}
	b.config.Alone = false
	engine, reader := b.config, b.config
	engine.ID, engine.Roles = "engine", Roles{Engine: true}
	reader.ID, reader.Roles = "reader", Roles{Live: true}
	owner, _ := b.run(t, engine)
	other, _ := b.run(t, reader)
	kafka, err := client.Kafka()
	if err != nil {
		t.Fatal(err)
	}
	admin := kadm.NewClient(kafka)
	defer admin.Close()
	week := "604800000"
	for _, name := range journals.All().Names() {
		change := []kadm.AlterConfig{{Op: kadm.SetConfig, Name: "retention.ms", Value: &week}}
		if _, err := admin.AlterTopicConfigs(t.Context(), change, client.Topic(name)); err != nil {
			t.Fatal(err)
		}
	}
	for _, n := range []*Node{owner, other} {
		for _, name := range journals.All().Names() {
			eventually(t, n.ID+": an alarm of "+name, func() string {
				if alarms := n.metric(t, "perpetua_journal_alarms_total", `journal="`+name+`"`, `kind="topic"`); alarms < 1 {
					return fmt.Sprintf("%v alarms", alarms)
				}
				return ""
			})
		}
	}
}
