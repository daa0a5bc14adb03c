package node

import (
	"net"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/perpetua-exchange/perpetua/cmd/perpetua/journals"
)

// TestReadyzNamesOneCause: a follower of logs whose beginning was lost says so. That it no longer asks the brokers for records is no
// second cause.
func TestReadyzNamesOneCause(t *testing.T) {
	b := newBench(t, journals.All())
	fake, err := kfake.NewCluster(kfake.NumBrokers(1)) // the embedded broker deletes no single records
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
	if err := client.EnsureTopics(t.Context(), b.config.Journals.Names()...); err != nil {
		t.Fatal(err)
	}
	_, stop := b.run(t, b.config)
	stop()
	kafka, err := client.Kafka()
	if err != nil {
		t.Fatal(err)
	}
	admin := kadm.NewClient(kafka)
	defer admin.Close()
	var beginnings kadm.Offsets
	for _, name := range b.config.Journals.Names() {
		beginnings.Add(kadm.Offset{Topic: client.Topic(name), At: 1})
	}
	if deleted, err := admin.DeleteRecords(t.Context(), beginnings); err != nil || deleted.Error() != nil {
		t.Fatal(err, deleted.Error())
	}

	b.config.Roles, b.config.Follow = Roles{API: true, Projector: true, Live: true}, &Following{}
	n := b.start(t)
	n.Announce()
	for _, name := range b.config.Journals.Names() {
		b.readiness(t, n, "unready", every(name+": LOG_BASE"))
	}
	// The readers of the rows close a moment after /readyz says LOG_BASE.
	eventually(t, "no cause but LOG_BASE", func() string {
		for _, fault := range n.logFaults(t.Context(), n.logAway(time.Now().Add(time.Minute))) {
			if !strings.Contains(fault, "LOG_BASE") {
				return fault
			}
		}
		return ""
	})
}
