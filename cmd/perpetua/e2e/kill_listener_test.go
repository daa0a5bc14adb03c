package e2e

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"github.com/perpetua-exchange/perpetua/domain/trading"
	"github.com/perpetua-exchange/perpetua/handlers/live/livetest"
	"github.com/perpetua-exchange/perpetua/handlers/wire"
	"github.com/perpetua-exchange/perpetua/streams/journal"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// listener is a client that hears everything that concerns it, over connections that end with the venue. On each topic that
// tells of what happened it goes on behind its last message; what tells of how accounts are now begins anew.
type listener struct {
	t      testing.TB
	user   string // "" for the public
	after  int    // the record behind which it began
	mine   func(fields) bool
	topics []string
	blind  bool                // to the topics positions and margin
	had    map[string]string   // the position of the last message by topic, and first where the listener began
	heard  map[string][]fields // by topic
	states []fields            // messages of the topics positions and margin

	events, accounts *livetest.Client // nil while not connected
}

// audienceAfter makes listeners that begin behind a record: both brokers, and the public. The customers of broker-b are those
// whose codes begin with B-.
func audienceAfter(t testing.TB, after int) []*listener {
	private, public := []string{"orders", "trades", "balance-changes"}, []string{"market-trades:" + bitcoin, "liquidations"}
	isBetas := func(f fields) bool { return strings.HasPrefix(f["customer_code"], "B-") }
	all := []*listener{
		{user: "broker-a", topics: private, mine: func(f fields) bool { return !isBetas(f) && f["customer_code"] != trading.FundCode }},
		{user: "broker-b", topics: private, mine: isBetas},
		{topics: public, mine: func(fields) bool { return true }},
	}
	for _, l := range all {
		l.t, l.after, l.had, l.heard = t, after, make(map[string]string), make(map[string][]fields)
		for _, topic := range l.topics {
			l.had[topic] = fmt.Sprintf("trading/0@%d", after)
		}
	}
	return all
}

// connect has the listener go on where it was, over a node.
func (l *listener) connect(v *venue) {
	l.t.Helper()
	token := ""
	if l.user != "" {
		token = v.token(l.user)
	}
	if l.user != "" && !l.blind {
		l.accounts = livetest.Dial(l.t, v.WebSocket, token)
		l.accounts.SubscribeWith(livetest.Request{Args: []string{"positions", "margin"}, Data: map[string]bool{"positions": true}})
	}
	l.events = livetest.Dial(l.t, v.WebSocket, token)
	for _, topic := range l.topics {
		l.events.SubscribeWith(livetest.Request{Args: []string{topic}, ResumeFrom: l.had[topic], Data: map[string]bool{"positions": true}})
	}
}

// ended takes down what came over connections that have ended with the venue.
func (l *listener) ended() {
	if l.events == nil {
		return
	}
	l.events.Closed()
	for _, topic := range l.topics {
		all := messages(l.events, topic)
		if len(all) > 0 {
			l.had[topic] = all[len(all)-1]["position"]
		}
		l.heard[topic] = append(l.heard[topic], all...)
	}
	if l.accounts != nil {
		l.accounts.Closed()
		l.takeStates()
	}
	l.events, l.accounts = nil, nil
}

func (l *listener) takeStates() {
	for _, topic := range []string{"positions", "margin"} {
		for _, m := range l.accounts.On(topic) {
			l.states = append(l.states, fields(m.Fields()))
		}
	}
}

// check wants the listener to have been told all that the log tells, in its order, each once, and nothing else: before a kill
// and after it.
func (l *listener) check(t testing.TB, told fromLog) {
	t.Helper()
	for _, topic := range l.topics {
		want := l.wanted(topic, told)
		now := func() []fields { return append(slices.Clip(l.heard[topic]), messages(l.events, topic)...) }
		waitForWord(t, "what "+l.user+" is told on "+topic, func() string {
			if got := len(now()); got < len(want) {
				return fmt.Sprintf("%d messages of %d", got, len(want))
			}
			return ""
		})
		got := without(now(), "position")
		for i := range min(len(got), len(want)) {
			if !maps.Equal(got[i], want[i]) {
				t.Errorf("message %d to %q on %s, of which %d came before the last start:\n got %v\nwant %v", i, l.user, topic, len(l.heard[topic]), got[i], want[i])
				return
			}
		}
		if len(got) > len(want) {
			t.Errorf("%q was told on %s what is not in the log: %v", l.user, topic, got[len(want)])
		}
	}
}

// wanted is what the log has for the listener on a topic, in the form of messages.
func (l *listener) wanted(topic string, told fromLog) (want []fields) {
	all := map[string][]fields{"orders": told.orders, "trades": told.trades, "balance-changes": told.transactions, "liquidations": told.liquidations,
		"market-trades:" + bitcoin: having(told.marketTrades, "symbol", bitcoin)}[topic]
	for _, f := range all {
		sequence, err := strconv.Atoi(f["sequence"])
		if err != nil {
			l.t.Fatal(err)
		}
		if sequence <= l.after || !l.mine(f) {
			continue
		}
		if topic == "orders" {
			f = asMessage(f)
		}
		want = append(want, f)
	}
	return want
}

// replay folds the log from its genesis. What the engine did by itself must be, step by step, what the rules decide on the
// state before: so whoever took over went on where the one before was. And what listeners were told of positions and accounts
// must be what these were after the record that the message names.
func replay(t testing.TB, v *venue, listeners []*listener) {
	t.Helper()
	client, done := v.openLog(t)
	defer done()
	told := make(map[int64][]fields)
	for _, l := range listeners {
		if l.accounts != nil {
			l.takeStates()
		}
		for _, m := range l.states {
			at, err := record.ParseLogPosition(m["position"])
			if err != nil {
				t.Fatalf("%v: %v", m, err)
			}
			told[at.Sequence] = append(told[at.Sequence], m)
		}
	}
	state := trading.Rules().NewState().(*trading.State)
	reader := journal.NewReader(client, trading.Rules(), 0, record.Before)
	defer reader.Close()
	steps, held := 0, 0
	err := reader.ToTip(t.Context(), func(entries []record.Entry) error {
		for _, e := range entries {
			if e.Record.Command.Type == "engine.step" {
				steps++
				sameStep(t, state, e)
			}
			state.Evolve(e.Stamp(), e.Record.Command, e.Record.Outcome, e.Record.Events)
			for _, m := range told[e.Record.Sequence] {
				held++
				sameState(t, state, m)
			}
			delete(told, e.Record.Sequence)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for sequence, all := range told {
		t.Errorf("somebody was told of record %d, which is not in the log: %v", sequence, all[0])
	}
	t.Logf("%d steps of the engine and %d messages about accounts are as the log has it", steps, held)
}

// sameStep wants a record of the engine's to be what the rules decide.
func sameStep(t testing.TB, state *trading.State, e record.Entry) {
	t.Helper()
	decided := state.Step(e.Stamp(), false)
	got, err := json.Marshal(e.Record.Events, json.Deterministic(true))
	if err != nil {
		t.Fatal(err)
	}
	want, err := json.Marshal(decided.Events, json.Deterministic(true))
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != string(want) {
		t.Errorf("record %d is\n%s\nand the rules decide\n%s", e.Record.Sequence, got, want)
	}
}

// sameState wants a message about a position or an account to be what it is.
func sameState(t testing.TB, state *trading.State, m fields) {
	t.Helper()
	var is any
	switch m["channel"] {
	case "positions":
		p, known := state.Position(m["customer_code"], m["symbol"])
		if !known {
			t.Errorf("there is no such position: %v", m)
			return
		}
		is = wire.NewPosition(&p)
	case "margin":
		s, known := state.Summary(m["customer_code"])
		if !known {
			t.Errorf("there is no such account: %v", m)
			return
		}
		is = wire.NewAccountSummary(&s)
	}
	text, err := json.Marshal(is)
	if err != nil {
		t.Fatal(err)
	}
	var want fields
	if err := want.UnmarshalJSON(text); err != nil {
		t.Fatal(err)
	}
	got := without([]fields{m}, "channel", "type", "position", "sequence")[0]
	if want["amount"] != "" && isNothing(want["amount"]) { // a closed position is told so shortly
		want["amount"], want["liquidation_price"] = "0", "null"
	}
	if !maps.Equal(got, want) {
		t.Errorf("at %s, somebody was told\n%v\nand it is\n%v", m["position"], got, want)
	}
}

// isNothing reports whether a decimal is zero.
func isNothing(decimal string) bool { return strings.Trim(decimal, "0.") == "" }
