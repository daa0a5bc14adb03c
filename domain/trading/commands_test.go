package trading

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/perpetua-exchange/perpetua/domain/decide"
)

// TestCommandsDescribeThemselves checks that every command can be made of its type alone and is decided by its payload,
// that a payload under another command's name is refused, and that a token for one account may give those about an
// account's orders and no others.
func TestCommandsDescribeThemselves(t *testing.T) {
	accounts := map[string]bool{CommandPlaceOrder: true, CommandAmendOrder: true, CommandCancelOrder: true, CommandCancelAll: true, CommandSetCancelAllAfter: true, CommandSetLeverage: true}
	refusedAs := func(c decide.Command) string {
		refusal := new(decide.Refusal)
		if _, err := NewState().Decide(decide.Stamp{Sequence: 1, Time: 1}, c); errors.As(err, &refusal) {
			return refusal.Code
		}
		return ""
	}
	for _, name := range Payloads().Types() {
		p, ok := Payloads().New(name)
		if !ok || p.CommandType() != name {
			t.Errorf("%s makes %T", name, p)
			continue
		}
		if code := refusedAs(decide.Command{Type: name, Actor: operator, Payload: p}); code == "UNKNOWN_COMMAND" {
			t.Errorf("%s is unknown", name)
		}
		if code := refusedAs(decide.Command{Type: name + "x", Actor: operator, Payload: p}); code != "UNKNOWN_COMMAND" {
			t.Errorf("%T is decided as another command: %s", p, code)
		}
		confined := refusedAs(decide.Command{Type: name, Actor: decide.Actor{Sub: "u", Broker: "alpha", Customer: "ann"}, Payload: p})
		want := "FORBIDDEN"
		if accounts[name] {
			want = "UNKNOWN_CUSTOMER" // it is about nobody
		}
		if confined != want {
			t.Errorf("%s with a token for one account: %s, not %s", name, confined, want)
		}
	}
	if _, ok := Payloads().New("order.dance"); ok {
		t.Error("a command that is not there")
	}
	if code := refusedAs(decide.Command{Type: CommandPlaceOrder, Actor: operator, Payload: 7}); code != "UNKNOWN_COMMAND" {
		t.Errorf("a payload of no kind: %s", code)
	}
}

// TestNewerRulesStopThisBuild checks that nobody folds on by rules that the build does not know.
func TestNewerRulesStopThisBuild(t *testing.T) {
	defer func() {
		if p := recover(); p == nil || !strings.Contains(fmt.Sprint(p), "must be upgraded") {
			t.Errorf("it went on: %v", p)
		}
	}()
	NewState().Evolve(decide.Stamp{Sequence: 3, Time: 3}, decide.Recorded{Type: decide.CommandActivateRules}, decide.Accepted,
		[]decide.Event{&decide.RulesActivated{Rules: Rules().Newest() + 1}})
}
