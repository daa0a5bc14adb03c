package journal_test

import (
	"bytes"
	"context"
	"net"
	"slices"
	"testing"
	"time"

	"github.com/perpetua-exchange/perpetua/streams/journal"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// throttled is a connection over a network that carries 1.5 MB a second.
type throttled struct{ net.Conn }

func (c throttled) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b[:min(len(b), 16<<10)])
	<-time.After(time.Duration(n) * time.Second / 1_500_000)
	return n, err
}

// TestASlowNetwork takes longer to carry one record than a broker may be silent. The record is read.
func TestASlowNetwork(t *testing.T) {
	r := newRig(t)
	all := values(r.written(2))
	r.recreate(slices.Insert(all, 1, bytes.Repeat([]byte("x"), 3_900_000))...)
	c := must(journal.NewClient(journal.Config{Brokers: r.brokers, Prefix: r.prefix, Dial: func(ctx context.Context, network, host string) (net.Conn, error) {
		near, err := new(net.Dialer).DialContext(ctx, network, host)
		return throttled{near}, err
	}}))
	defer c.Close()
	reader := journal.NewReader(c, r.rules, 0, record.Before)
	defer reader.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for n := 0; n < len(all); {
		entries, err := reader.Poll(ctx)
		if err != nil {
			t.Fatalf("after %d records: %v", n, err)
		}
		n += len(entries)
	}
}
