package ownership

import (
	"context"
	"net"
	"testing"
)

func TestAPeerIsDeadOnceNobodyListens(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	at := "http://" + l.Addr().String()
	ctx := context.Background()
	var p, stranger peer
	for range 3 {
		if p.look(ctx, at); p.dead() {
			t.Fatal("a peer that listens is dead")
		}
	}
	l.Close()
	if p.look(ctx, at); p.dead() {
		t.Error("a peer is dead at the first refusal")
	}
	if p.look(ctx, at); !p.dead() {
		t.Error("a peer lives on after its port was closed")
	}
	for range 3 {
		stranger.look(ctx, at)
	}
	if stranger.dead() {
		t.Error("a peer that was never reached is dead, though its URL may be wrong")
	}
	var nowhere peer
	for _, url := range []string{"", "http://example", "://"} {
		if nowhere.look(ctx, url); nowhere.dead() {
			t.Errorf("dead at %q", url)
		}
	}
}
