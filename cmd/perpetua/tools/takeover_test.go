package tools

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/perpetua-exchange/perpetua/cmd/perpetua/local"
	"github.com/perpetua-exchange/perpetua/cmd/perpetua/settings"
	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/streams/base"
	"github.com/perpetua-exchange/perpetua/streams/blob"
	"github.com/perpetua-exchange/perpetua/streams/broker"
	"github.com/perpetua-exchange/perpetua/streams/fence"
	"github.com/perpetua-exchange/perpetua/streams/journal"
	"github.com/perpetua-exchange/perpetua/streams/record"
	"github.com/perpetua-exchange/perpetua/streams/seal"
)

// foundedFolder makes a data folder whose onboarding journal has only its genesis.
func foundedFolder(t *testing.T) (dir string) {
	t.Helper()
	id := scalar.ID{7}
	r := &record.Record{Time: 1_700_000_000_000_000, Outcome: decide.Accepted,
		Command: decide.Recorded{ID: id, Type: record.TypeGenesis, Actor: decide.Engine},
		Events:  []decide.Event{&record.Genesis{Journal: fence.Journal, JournalID: id, Partitions: 1}}}
	value, err := record.Encode(nil, r)
	if err != nil {
		t.Fatal(err)
	}
	genesis := journal.KafkaRecord(fence.Journal, fence.Journal, 0, id, r, value)
	return filledFolder(t, []*kgo.Record{genesis}, 2<<10, func(*broker.Broker, *journal.Client, base.Folder) {})
}

// interrupting is an output that ends a context at the first line.
type interrupting struct {
	bytes.Buffer
	end context.CancelFunc
}

func (i *interrupting) Write(line []byte) (int, error) {
	i.end()
	return i.Buffer.Write(line)
}

// TestTakeOverOfALostFence: only --fence-lost creates a fence, and only in a key store that has something of the venue. The master
// key in the environment shows nothing of the store: it may be the empty folder of a file system that is not mounted.
func TestTakeOverOfALostFence(t *testing.T) {
	dir := foundedFolder(t)
	box, err := seal.New(make([]byte, seal.KeySize))
	if err != nil {
		t.Fatal(err)
	}
	given := map[string]string{seal.Environment: base64.StdEncoding.EncodeToString(make([]byte, seal.KeySize))}
	store := filepath.Join(dir, seal.Folder)
	takeOver := func(args ...string) (string, error) {
		ctx, end := context.WithCancel(t.Context())
		defer end()
		out := &interrupting{end: end}
		err := TakeOver(ctx, append([]string{"--data", dir}, args...), settings.IO{Out: out, Err: io.Discard,
			Env: func(name string) (string, bool) { v, set := given[name]; return v, set }})
		return out.String(), err
	}
	hasFence := func() bool {
		found, err := os.ReadDir(filepath.Join(store, "fence"))
		return err == nil && len(found) > 0
	}
	if _, err := takeOver(); err == nil || !strings.Contains(err.Error(), "add --fence-lost") {
		t.Errorf("without the flag: %v", err)
	}
	if _, err := takeOver("--fence-lost"); !errors.Is(err, errEmptyStore) {
		t.Errorf("an empty key store: %v", err)
	}
	if hasFence() {
		t.Fatal("a refused take-over created a fence")
	}
	keys, err := seal.OpenKeyStore(t.Context(), blob.URLOf(store))
	if err != nil {
		t.Fatal(err)
	}
	defer keys.Close()
	if _, err := seal.NewGenerations(keys, box).Create(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	if said, err := takeOver("--fence-lost"); !errors.Is(err, context.Canceled) || !strings.Contains(said, "the fence is this venue's") || !hasFence() {
		t.Errorf("a restored key store: %q, %v", said, err)
	}
}

// TestTakeOverOfAFollower: the key store of a follower gets no fence, because the follower would not act on it.
func TestTakeOverOfAFollower(t *testing.T) {
	dir := foundedFolder(t)
	writeRunFile(t, dir, local.RunFile{Kafka: []string{"127.0.0.1:1"}, Follows: local.FollowsBrokers})
	refused := func(args ...string) {
		t.Helper()
		err := TakeOver(t.Context(), append([]string{"--data", dir, "--fence-lost"}, args...), outputTo(io.Discard))
		if err == nil || !strings.Contains(err.Error(), "only a venue has a fence") {
			t.Error(err)
		}
	}
	refused()
	if err := errors.Join(os.Remove(filepath.Join(dir, "run.json")), (&local.Folder{Dir: dir}).SetFollows(local.FollowsArchive)); err != nil {
		t.Fatal(err)
	}
	refused() // it does not run
	refused("--kafka-brokers", "127.0.0.1:1")
	if _, err := os.Stat(filepath.Join(dir, seal.Folder, "fence")); err == nil {
		t.Error("the key store has a fence")
	}
}
