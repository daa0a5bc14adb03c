package journal_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/perpetua-exchange/perpetua/streams/broker"
	"github.com/perpetua-exchange/perpetua/streams/journal"
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
	note("embedded", b.Addrs(), "")
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
		note(where, b.Addrs(), "")
	}
	for id := range ids {
		if !strings.HasPrefix(id, broker.ClusterPrefix) {
			t.Errorf("an embedded log is %s", id)
		}
	}
	if len(ids) != 2 {
		t.Errorf("%d logs: %v", len(ids), ids)
	}
}
