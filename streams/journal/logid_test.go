package journal_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/perpetua-exchange/perpetua/streams/broker"
	"github.com/perpetua-exchange/perpetua/streams/journal"
	"github.com/perpetua-exchange/perpetua/streams/transfer"
)

// TestALogHasAnIdentity: it differs between topics and between clusters, and between the embedded brokers of two folders of
// which one is a copy of the other.
func TestALogHasAnIdentity(t *testing.T) {
	ids := make(map[string]string)
	note := func(where string, addrs []string, topics ...string) {
		for _, prefix := range topics {
			c, err := journal.NewClient(journal.Config{Brokers: addrs, Prefix: prefix})
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			if err := c.EnsureTopics(t.Context(), "trading"); err != nil {
				t.Fatal(err)
			}
			for range 2 {
				id, err := c.LogID(t.Context(), "trading")
				if err != nil {
					t.Fatal(err)
				}
				if other, known := ids[id]; known && other != where+prefix {
					t.Errorf("the logs of %s and %s are one: %s", other, where+prefix, id)
				}
				ids[id] = where + prefix
			}
		}
	}
	for _, name := range []string{"one", "two"} {
		fake, err := kfake.NewCluster(kfake.NumBrokers(2), kfake.ClusterID(name))
		if err != nil {
			t.Fatal(err)
		}
		defer fake.Close()
		note(name, fake.ListenAddrs(), "a.", "b.")
	}
	if len(ids) != 4 {
		t.Errorf("%d logs: %v", len(ids), ids)
	}
	// A broker writes its files when it stops, and chooses its port when it starts: so the two are copied apart and run together.
	dir, copied := t.TempDir(), filepath.Join(t.TempDir(), "copy")
	start := func(dir string) *broker.Broker {
		b, err := broker.Start(t.Context(), broker.Config{Dir: dir})
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	b := start(dir)
	note("embedded", b.Addrs(), "", "copy.")
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	clear(ids)
	if err := os.CopyFS(copied, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	for where, dir := range map[string]string{"embedded": dir, "its copy": copied} {
		b := start(dir)
		defer b.Close()
		note(where, b.Addrs(), "", "copy.")
	}
	for id := range ids {
		if !strings.HasPrefix(id, broker.ClusterPrefix) {
			t.Errorf("an embedded log is %s", id)
		}
	}
	if len(ids) != 4 {
		t.Errorf("%d logs: %v", len(ids), ids)
	}
}

// TestTheFormerPlaceOfALog: older builds gave one place to all topics of an embedded broker. Only a log that may have been meant
// takes it.
func TestTheFormerPlaceOfALog(t *testing.T) {
	b, err := broker.Start(t.Context(), broker.Config{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	logs := func(prefix string) *rig {
		r := &rig{t: t, brokers: b.Addrs(), prefix: prefix, rules: newRules()}
		r.client = r.newClient(nil, nil)
		if err := r.client.EnsureTopics(r.context(), "trading"); err != nil {
			t.Fatal(err)
		}
		return r
	}
	founded := func(prefix string) *rig {
		r := logs(prefix)
		r.owner("n").ready().end()
		return r
	}
	former := func(r *rig, want bool) {
		t.Helper()
		at, err := r.client.FormerLogLocation(t.Context(), "trading")
		if is := at != (journal.LogLocation{}); is != want || err != nil || is && (at.Topic != "" || !broker.Embedded(at.Cluster)) {
			t.Errorf("the former place of the log of %q is %q (%v)", r.prefix, at, err)
		}
	}
	one := founded("one.")
	former(one, true)
	founded("two.")
	former(one, true) // the other log is of another venue
	plain, copied := founded(""), logs("copy.")
	from, to := transfer.Topic(plain.client, "trading", "here"), transfer.Topic(copied.client, "trading", "there")
	if _, err := transfer.Copy(t.Context(), plain.rules, from, to, nil); err != nil {
		t.Fatal(err)
	}
	former(plain, true)
	former(copied, false)
}
