package broker_test

import (
	"context"
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// TestNearAndFarAreOneBroker appends over both kinds of connection and reads everything over both.
func TestNearAndFarAreOneBroker(t *testing.T) {
	b := start(t, t.TempDir())
	near, far := client(t, b.Addrs(), kgo.Dialer(b.Dial)), client(t, b.Addrs())
	createTopic(t, far, topic, nil)
	big := strings.Repeat("a record that does not fit the buffer of a connection at once ", 10_000)
	want := []string{"near", "far", big, "end"}
	for i, v := range want {
		c := near
		if i == 1 {
			c = far
		}
		if at := produce(t, c, topic, v); at != int64(i) {
			t.Errorf("%.8q is at offset %d, want %d", v, at, i)
		}
	}
	if got := values(t, b.Addrs(), topic); !slices.Equal(got, want) {
		t.Errorf("over loopback there are %d records", len(got))
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	reader := client(t, b.Addrs(), kgo.Dialer(b.Dial), kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: {0: kgo.NewOffset().At(0)}}))
	var got []string
	for len(got) < len(want) {
		fetches := reader.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			t.Fatal(err)
		}
		fetches.EachRecord(func(r *kgo.Record) { got = append(got, string(r.Value)) })
	}
	if !slices.Equal(got, want) {
		t.Errorf("from within the process there are %d records", len(got))
	}
}

// TestNearConnectionsEndAsOthersDo says with which errors.
func TestNearConnectionsEndAsOthersDo(t *testing.T) {
	b := start(t, t.TempDir())
	dial := func() net.Conn {
		c, err := b.Dial(t.Context(), "tcp", b.Addrs()[0])
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	one, other := dial(), dial()
	if err := one.SetReadDeadline(time.Now().Add(-time.Second)); err != nil {
		t.Fatal(err)
	}
	var timeout net.Error
	if _, err := one.Read(make([]byte, 1)); !errors.As(err, &timeout) || !timeout.Timeout() {
		t.Errorf("past its deadline a read fails with %v", err)
	}
	one.Close()
	if _, err := one.Write([]byte("x")); !errors.Is(err, net.ErrClosed) {
		t.Errorf("after its end a write fails with %v", err)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := other.Read(make([]byte, 1)); !errors.Is(err, io.EOF) && !errors.Is(err, net.ErrClosed) {
		t.Errorf("when the broker is gone a read fails with %v", err)
	}
	if _, err := b.Dial(t.Context(), "tcp", b.Addrs()[0]); !errors.Is(err, net.ErrClosed) {
		t.Errorf("when the broker is gone dialling fails with %v", err)
	}
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := b.Dial(canceled, "tcp", "127.0.0.1:1"); err == nil {
		t.Error("another address is this broker")
	}
}
