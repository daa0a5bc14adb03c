package reference_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/order"
	"github.com/perpetua-exchange/perpetua/domain/reference"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/domain/trading"
)

// turns is a venue whose test chooses between the next step and the next command, as an owner may.
type turns struct {
	*venue
	product *product
	orders  int
}

// openTurns opens a venue with an instrument and a customer. keeps says whether it keeps all records.
func openTurns(t *testing.T, keeps bool) *turns {
	t.Helper()
	v := &turns{venue: openVenue(t, 1, scalar.TimeOf(time.Date(2027, 3, 1, 9, 0, 0, 0, time.UTC))), product: listed()[0]}
	v.keeps = keeps
	v.give(operator, decide.Metadata{}, &trading.ListInstrument{Instrument: v.product.Instrument})
	v.give(operator, decide.Metadata{}, &trading.SetIndexPrice{Symbol: v.product.Symbol, Price: v.product.price(0)})
	v.give(decide.Actor{Sub: "b", Broker: "b"}, decide.Metadata{}, &trading.RegisterCustomer{CustomerCode: "holder"})
	v.give(operator, decide.Metadata{Fingerprint: "d"}, &trading.MakeDeposit{CustomerCode: "holder", Currency: "USDC", Amount: 10_000_000 * fixed.Unit, ReferenceID: "d"})
	v.drain()
	return v
}

// command decides a command: an order that rests until a time.
func (v *turns) command(until scalar.Time) {
	v.t.Helper()
	v.orders++
	v.give(decide.Actor{Sub: "b", Broker: "b"}, decide.Metadata{}, &trading.PlaceOrder{CustomerCode: "holder", Symbol: v.product.Symbol, Action: order.Buy,
		Type: order.Limit, Amount: decimal("0.001"), LimitPrice: v.product.price(-0.01), TimeInForce: order.GTD, ExpireTime: until, ReferenceID: fmt.Sprint(v.orders)})
	v.decide()
}

// without returns the error of an auditor that reads the records but for the last step of expiry.
func (v *turns) without() error {
	steps := 0
	for _, value := range v.tail {
		if bytes.Contains(value, []byte(`"work":"expiry"`)) {
			steps++
		}
	}
	return replay(v.tail, func(value []byte) []byte {
		if bytes.Contains(value, []byte(`"work":"expiry"`)) {
			if steps--; steps == 0 {
				return nil
			}
		}
		return value
	})
}

// TestACommandMayComeBeforeAStep decides a command at the moment at which an order expires. Since the last step, nothing was due
// when a command was decided, so the command may come first. A second one may not.
func TestACommandMayComeBeforeAStep(t *testing.T) {
	v := openTurns(t, true)
	now := v.now
	v.command(now + scalar.Second)
	v.command(now + 2*scalar.Second)
	v.now = now + scalar.Second
	v.step()
	v.command(now + scalar.Minute)
	v.now = now + 2*scalar.Second
	v.command(now + scalar.Minute)
	v.step()
	v.command(now + scalar.Minute)
	if err := v.without(); err == nil || !strings.Contains(err.Error(), "a second command is decided while expiry is due") {
		t.Errorf("without the step, the auditor says %v", err)
	}
}

// TestCommandsPassStepsInFlight decides commands one after the other while orders are to expire, as an owner does once 128 KiB of
// steps are not acknowledged.
func TestCommandsPassStepsInFlight(t *testing.T) {
	v := openTurns(t, false)
	v.fill()
	v.command(v.now + scalar.Minute)
	v.command(v.now + scalar.Minute)
}

// TestANewOwnerHasNoStepsInFlight leaves out the first step of an owner that takes over from one with 128 KiB of steps.
func TestANewOwnerHasNoStepsInFlight(t *testing.T) {
	v := openTurns(t, true)
	v.fill()
	v.takeOver()
	v.step()
	v.command(v.now + scalar.Minute)
	if err := v.without(); err == nil || !strings.Contains(err.Error(), "a second command is decided while expiry is due") {
		t.Errorf("without the step, the auditor says %v", err)
	}
}

// fill has orders expire until 128 KiB of steps are in flight. More are to expire.
func (v *turns) fill() {
	v.t.Helper()
	until := v.now + scalar.Second
	for range 1000 {
		v.command(until)
	}
	v.now = until
	for bytes := 0; bytes < 128<<10; v.command(until + scalar.Minute) {
		v.step()
		bytes += len(v.tail[len(v.tail)-1])
	}
	if v.state.Due(v.now) != decide.Alternate {
		v.t.Fatal("no order is left to expire")
	}
}

// TestWorkThatIsSetAsideIsNotCovered has the owner set a step aside. The model cannot tell whether the step failed, so it accuses nobody.
func TestWorkThatIsSetAsideIsNotCovered(t *testing.T) {
	v := openTurns(t, false)
	v.command(v.now + scalar.Second)
	v.now += scalar.Second
	d := v.state.SetAside(v.stamp(), "it failed")
	err := v.auditor.Check(v.write(decide.Recorded{ID: scalar.ID{0xe}, Type: d.Events[0].EventType(), Actor: decide.Engine}, d))
	var uncovered *reference.UncoveredError
	if !errors.As(err, &uncovered) || uncovered.Event != "due.set_aside" {
		t.Errorf("the auditor says %v", err)
	}
}
