package demo

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
)

// stage is a venue as far as the show sees it: it remembers what it was asked for, and says that GAMBLER has a position.
type stage struct{ asked []string }

func (s *stage) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case strings.HasPrefix(r.URL.Path, "/auth/"):
		fmt.Fprint(w, `{"access_token":"t"}`)
		return
	case strings.HasSuffix(r.URL.Path, "/positions") && strings.Contains(r.URL.Path, "GAMBLER"):
		fmt.Fprint(w, `[{"symbol":"SOLUSDC_PERP","amount":"-8.0"}]`)
		return
	case strings.HasSuffix(r.URL.Path, "/positions"):
		fmt.Fprint(w, `[]`)
		return
	case strings.HasSuffix(r.URL.Path, "/account-summary"):
		fmt.Fprint(w, `[{"available_margin":"400.5"}]`)
		return
	}
	var body map[string]any
	content, _ := io.ReadAll(r.Body)
	_ = json.Unmarshal(content, &body)
	delete(body, "reference_id")
	delete(body, "symbol")
	delete(body, "currency")
	s.asked = append(s.asked, fmt.Sprint(r.Method, " ", strings.TrimPrefix(r.URL.Path, "/v1/customers/"), " ", body))
	w.WriteHeader(http.StatusCreated)
	fmt.Fprint(w, `{}`)
}

func sol(t *testing.T) *market {
	t.Helper()
	m, err := newMarket(presets()[2], 2, listed{Symbol: showSymbol, PriceTick: decimal(t, "0.001"), AmountStep: decimal(t, "0.1")}, 0, 1, 0)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// TestShow plays two acts: in the first the traders buy and the price falls, in the second they sell and it rises.
func TestShow(t *testing.T) {
	s := &stage{}
	server := httptest.NewServer(s)
	defer server.Close()
	d := &demo{log: slog.New(slog.DiscardHandler), rest: newClient(server.URL, "test", slog.New(slog.DiscardHandler)), failures: map[string]bool{},
		operator: &user{}, broker: &user{}}
	defer d.rest.close()
	m := sol(t)
	var said [2][]string
	for act := range said {
		s.asked = nil
		for range actTurns {
			m.move()
			m.index = m.began // so that amounts and prices do not depend on the walk
			if err := d.play(context.Background(), m); err != nil {
				t.Fatal(err)
			}
		}
		said[act] = s.asked
	}
	act := func(entry, exit, stop, profit string) []string {
		return []string{
			"DELETE CAREFUL/orders map[]", "POST /admin/v1/customers/CAREFUL/deposits map[amount:9600]",
			"DELETE GAMBLER/orders map[]", "POST GAMBLER/orders map[action:buy amount:8.0 reduce_only:true type:market]",
			"POST /admin/v1/customers/GAMBLER/deposits map[amount:600]",
			"POST CAREFUL/orders map[action:" + entry + " amount:40.0 leverage:5 type:market]",
			"POST CAREFUL/orders map[action:" + exit + " amount:40.0 reduce_only:true trigger_price:" + stop + " type:stop_loss]",
			"POST CAREFUL/orders map[action:" + exit + " amount:40.0 limit_price:" + profit + " reduce_only:true trigger_price:" + profit + " type:take_profit_limit]",
			"POST GAMBLER/orders map[action:" + entry + " amount:80.0 leverage:13 type:market]",
		}
	}
	if want := act("buy", "sell", "147.000", "154.500"); !reflect.DeepEqual(said[0], want) {
		t.Errorf("the first act:\n%s\nwant\n%s", strings.Join(said[0], "\n"), strings.Join(want, "\n"))
	}
	if want := act("sell", "buy", "153.000", "145.500"); !reflect.DeepEqual(said[1], want) {
		t.Errorf("the second act:\n%s\nwant\n%s", strings.Join(said[1], "\n"), strings.Join(want, "\n"))
	}
}

// TestShowMovesThePrice: in each act the price goes far enough against the traders that the one without a stop, who has
// 3.85 % beyond its margin, cannot hold on; elsewhere, and after the last act, nobody moves it.
func TestShowMovesThePrice(t *testing.T) {
	m := sol(t)
	for act := range acts {
		var entered, lowest, highest int64
		for range actTurns {
			m.move()
			turn, side, ok := m.act()
			if !ok || side != act%2 {
				t.Fatalf("turn %d is in act %v, side %d", m.turns, ok, side)
			}
			if turn == enterTurn {
				entered, lowest, highest = m.index, m.index, m.index
			}
			lowest, highest = min(lowest, m.index), max(highest, m.index)
		}
		against := [2]int64{entered - lowest, highest - entered}[act%2] * 1000 / entered
		if against < 50 {
			t.Errorf("in act %d the price goes %d ‰ against the traders", act, against)
		}
	}
	m.turns = acts * actTurns
	for range actTurns {
		m.move()
		if m.moving() {
			t.Fatalf("turn %d moves the price", m.turns)
		}
	}
	if b := bitcoin(t, 1); func() bool { b.turns = moveTurn; return b.moving() }() {
		t.Error("the price of another instrument is moved")
	}
}
