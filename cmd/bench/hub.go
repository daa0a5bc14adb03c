package main

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/gorilla/websocket"
	"github.com/olahol/melody"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/trading"
	"github.com/perpetua-exchange/perpetua/handlers/live"
	"github.com/perpetua-exchange/perpetua/handlers/web/access"
	"github.com/perpetua-exchange/perpetua/handlers/web/rest"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// follower implements the methods of record.Follower that the hub calls, with an engine in memory.
type follower struct {
	record.Follower
	mu     sync.RWMutex
	engine *engine
	listen []func(record.Entry, decide.State)
}

func (f *follower) View(look func(decide.State, record.Position)) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	look(f.engine.state, f.engine.at)
}

func (f *follower) Listen(call func(record.Entry, decide.State)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.listen = append(f.listen, call)
}

// Wait waits for the end of the context: the hub calls it only to learn of an error, and this follower has none.
func (f *follower) Wait(ctx context.Context, _ int64) error {
	<-ctx.Done()
	return ctx.Err()
}

func (f *follower) WaitTip(context.Context) error { return nil }

func (f *follower) CaughtUp() <-chan struct{} { return record.AtOnce() }

func (f *follower) do(c decide.Command) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	e, err := f.engine.do(c)
	if err != nil {
		return err
	}
	for _, call := range f.listen {
		call(e, f.engine.state)
	}
	return nil
}

// nobody is a live.Verifier that accepts no token, because the book is public.
type nobody struct{}

func (nobody) Verify(_, _ string) (*access.Principal, error) {
	return nil, errors.New("no token is known")
}

// hubChild serves sockets with the hub of a live node, from records that it decides.
func hubChild(ctx context.Context, cfg socketConfig, in *json.Decoder, out *json.Encoder) error {
	e, _, err := newEngine()
	if err != nil {
		return err
	}
	f := &follower{engine: e}
	hub := live.New(live.Config{Follower: f, Journal: "trading", Tokens: nobody{}})
	server, err := rest.New(rest.Options{})
	if err != nil {
		return err
	}
	hub.Register(server.Echo)
	running, stop := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() { defer close(ended); _ = hub.Run(running) }() // it ends with its context and returns no other error
	defer func() {
		stop()
		<-ended
		ending, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = hub.Close(ending)
	}()
	n := int64(0)
	return serveSockets(server, live.Path, cfg, in, out, func() error {
		// An order that rests, one that takes it, and so on at lower levels: every record changes the book, which stays
		// small.
		o := levelOrder(int(n), 0)
		o.LimitPrice.Coef -= n / 2 % 100
		n++
		return f.do(command(trader(), trading.CommandPlaceOrder, o))
	}, true)
}

// melodyChild serves sockets with melody alone, which sends the same message to all of them.
func melodyChild(_ context.Context, cfg socketConfig, in *json.Decoder, out *json.Encoder) error {
	m := melody.New()
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _ = m.HandleRequest(w, r) })
	return serveSockets(handler, "/", cfg, in, out, func() error { return m.Broadcast(cfg.Message) }, false)
}

// serveSockets serves until the input ends. With sample, it first reads a message to use as a sample.
func serveSockets(handler http.Handler, path string, cfg socketConfig, in *json.Decoder, out *json.Encoder, send func() error, sample bool) error {
	p, err := newPace(cfg.Sockets)
	if err != nil {
		return err
	}
	addr, stop, err := serveHTTP(handler)
	if err != nil {
		return errors.Join(err, p.listener.Close())
	}
	ready := socketReady{URL: "ws://" + addr + path, Pace: p.listener.Addr().String()}
	if sample {
		ready.Message, err = sampleMessage(ready.URL, send)
	}
	if err == nil {
		err = out.Encode(ready)
	}
	if err == nil {
		err = p.serve(in, out, send)
	}
	return errors.Join(err, p.listener.Close(), stop())
}

// sampleMessage subscribes to the book and returns the first update.
func sampleMessage(url string, send func() error) ([]byte, error) {
	c, answer, err := websocket.DefaultDialer.Dial(url, nil)
	if err != nil {
		return nil, err
	}
	answer.Body.Close()
	defer c.Close()
	if err := c.WriteMessage(websocket.TextMessage, []byte(`{"op":"subscribe","args":["orderbook-stream:`+symbol+`"]}`)); err != nil {
		return nil, err
	}
	for {
		_, message, err := c.ReadMessage()
		if err != nil {
			return nil, err
		}
		if strings.Contains(string(message), `"update"`) {
			return message, nil
		}
		if strings.Contains(string(message), `"snapshot"`) {
			if err := send(); err != nil {
				return nil, err
			}
		}
	}
}
