package journal

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/streams/record"
	"github.com/perpetua-exchange/perpetua/streams/record/recordtest"
	"github.com/perpetua-exchange/perpetua/streams/submit"
)

// TestATailThatCanNotShareReadsOnByItself has a tail stand at the end of the log while the feed of its partition has
// another position: one that lost its log, say, and does not know it yet, or has gone on by more than it holds.
func TestATailThatCanNotShareReadsOnByItself(t *testing.T) {
	for what, elsewhere := range map[string]*feed{
		"far ahead":      {base: record.Position{Offset: 90, Sequence: 90}},
		"of another log": {base: record.Position{Offset: 3, Hash: record.Hash{9}}, entries: chained(record.Position{Offset: 3, Hash: record.Hash{9}}, 3, 10)},
		"ended":          {base: record.Before, err: errors.New("ended")},
	} {
		t.Run(what, func(t *testing.T) {
			c := onItsOwn(t)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			c.feeds[submit.Shard{Journal: "trading"}] = elsewhere
			tail := NewTail(c, recordtest.Rules{}, 0, record.Before)
			defer tail.Close()
			if entries, _, err := tail.Next(ctx); err != nil || len(entries) > 0 { // it is at the tip
				t.Fatal(entries, err)
			}
			came := make(chan error, 1)
			go func() {
				_, err := tail.Poll(ctx)
				came <- err
			}()
			value, err := record.Encode(nil, &record.Record{Outcome: decide.Accepted, Command: decide.Recorded{Type: record.TypeGenesis, Actor: decide.Engine},
				Events: []decide.Event{&record.Genesis{Journal: "trading", JournalID: scalar.ID{1}, Partitions: 1}}})
			if err != nil {
				t.Fatal(err)
			}
			if err := c.append(ctx, value); err != nil {
				t.Fatal(err)
			}
			if err := <-came; err != nil {
				t.Error(err)
			}
		})
	}
}

// onItsOwn returns a client of a cluster with an empty log of trading.
func onItsOwn(t *testing.T) *Client {
	t.Helper()
	fake, err := kfake.NewCluster(kfake.NumBrokers(1))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(fake.Close)
	c, err := NewClient(Config{Brokers: fake.ListenAddrs()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	if err := c.EnsureTopics(t.Context(), "trading"); err != nil {
		t.Fatal(err)
	}
	return c
}

// append appends a value to the log of trading.
func (c *Client) append(ctx context.Context, value []byte) error {
	w, err := c.writer()
	if err != nil {
		return err
	}
	defer w.Close()
	return w.ProduceSync(ctx, &kgo.Record{Topic: c.Topic("trading"), Value: value}).FirstErr()
}
