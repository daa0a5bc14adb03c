package trading

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/perpetua-exchange/perpetua/domain/form"
	domain "github.com/perpetua-exchange/perpetua/domain/trading"
	"github.com/perpetua-exchange/perpetua/handlers/web/input"
	"github.com/perpetua-exchange/perpetua/handlers/web/problem"
	"github.com/perpetua-exchange/perpetua/streams/record/recordtest"
)

// oddValues are JSON values, valid for some member, for none, or not even JSON.
var oddValues = []string{
	`"1"`, `"65000.10"`, `"0"`, `"-0"`, `"-0.0"`, `"-1"`, `"01"`, `"0.000"`, `"1e3"`, `"+1"`, `".5"`, `"5."`, `"1 "`, `1`, `0`, `-1`, `1.0`, `1e1`, `-0`,
	`14`, `100`, `99999999999999999999`, `-99999999999999999999`, `""`, `"999999999999999999"`, `"1234567890123456789"`, `"12345678901234567890123"`,
	`"0.00000001"`, `"0.000000001"`, `"1.000000000"`, `"92233720369"`, `null`, `true`, `false`, `"true"`, `{}`, `[]`, `[1]`, `{"a":1}`,
	`{"a":1,"a":2,"b":"\ud800"}`, `["\ud800","` + "\xff" + `",{"x":"` + "\xff" + `"}]`, `"\ud800"`, "\"\xff\"", `"\ud83d\ude00"`, `"é"`, `"a b"`, `"a\u0000b"`, `"a\u0085b"`, `"\u0062uy"`,
	`"a` + "\x7f" + `"`, `"buy"`, `"sell"`, `"BUY"`, `"limit"`, `"market"`, `"stop_loss"`, `"take_profit_stop_loss"`, `"trade_price"`, `"mark_price"`, `"GTC"`, `"IOC"`, `"GTD"`, `"gtc"`,
	`"2030-01-01T00:00:00.000000Z"`, `"2030-01-01T00:00:00Z"`, `"2030-01-01t00:00:00.5+01:00"`, `"2030-01-01T00:00:00.0000001Z"`, `"2030-01-01T00:00:00.0000000Z"`,
	`"1999-12-31T23:59:59.999999Z"`, `"2101-01-01T00:00:00.000000Z"`, `"1969-12-31T23:59:59.999999Z"`, `"2030-02-30T00:00:00.000000Z"`, `1893456000000`, `1893456000000.5`, `-5`, `"13"`, `"14"`, `"05"`,
	`"00000000-0000-8000-8000-00000000000a"`, `"00000000-0000-8000-8000-00000000000A"`, `"00000000-0000-8000-8000-00000000000g"`, `"BTCUSDC_PERP"`, `"r-1"`, `"r.1:x_"`,
	`"` + strings.Repeat("x", 33) + `"`, `"` + strings.Repeat("x", 65) + `"`, strings.Repeat("[", 15) + strings.Repeat("]", 15), strings.Repeat("[", 16) + strings.Repeat("]", 16),
	strings.Repeat(`{"a":`, 20) + "1" + strings.Repeat("}", 20), `tru`, `nul`, `"open`, `'x'`, `01`, `1.`, `--1`, ``, `"\x"`, `"\u12"`, "\"a\nb\"",
}

// oddNames are names of members, quoted.
var oddNames = []string{`"x"`, `"stop_price"`, `"symb\u006fl"`, `"\ud800"`, "\"\xff\"", `""`, `"SYMBOL"`, `"` + strings.Repeat("n", 200) + `"`, `"a\u0000"`, `x`, `"amount`}

// drawBody makes an object of a form's members with good and bad values.
func drawBody(r *rand.Rand, names []string, usual map[string][]string) string {
	space := func() string {
		if r.IntN(6) > 0 {
			return ""
		}
		return []string{" ", "\n\t", "\r\n", "\v"}[min(r.IntN(8), 3)%4]
	}
	pick := func(from []string) string { return from[r.IntN(len(from))] }
	if r.IntN(60) == 0 {
		return pick([]string{"", " ", "null", "7", `"x"`, "[]", "[\"\\ud800\"]", "{", "}", "{}", "{} x", "{}{}", `{"symbol"}`, `{"symbol":}`, `{,}`, `{"symbol":"B",}`, "\xef\xbb\xbf{}"})
	}
	var b strings.Builder
	b.WriteString(space() + "{")
	for i := range r.IntN(len(names) + 2) {
		if i > 0 && r.IntN(200) > 0 {
			b.WriteString(",")
		}
		name := pick(names)
		value := pick(oddValues)
		if good := usual[name]; len(good) > 0 && r.IntN(4) > 0 {
			value = pick(good)
		}
		if name = `"` + name + `"`; r.IntN(25) == 0 {
			name = pick(oddNames)
		}
		b.WriteString(space() + name + space() + ":" + space() + value + space())
	}
	if r.IntN(40) == 0 {
		for i := range 150 { // more errors than are reported
			fmt.Fprintf(&b, `%s"u%d":"%s"`, map[bool]string{true: ","}[!strings.HasSuffix(b.String(), "{")], i, map[bool]string{true: `\ud800`}[r.IntN(2) == 0])
		}
	}
	b.WriteString(pick([]string{"}", "}", "}", "}", "} ", "}\n", "}}", "} x", "", ",}"}))
	return b.String()
}

// faultsOf describes the errors of a request in full.
func faultsOf(err error) string {
	var p *problem.Problem
	if !errors.As(err, &p) {
		return fmt.Sprint(err)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%d %s %s", p.Status, p.Code, p.Detail)
	for _, e := range p.Errors {
		fmt.Fprintf(&b, "\n%q %q %q %q %q %q %q", e.In, fmt.Sprint(e.Path), e.Code, e.Kind, e.Message, fmt.Sprint(e.Args), fmt.Sprint(e.Input))
	}
	return b.String()
}

// orderMembers are the members of order entries, with values that are usually valid.
var orderMembers = map[string][]string{
	"symbol": {`"BTCUSDC_PERP"`}, "action": {`"buy"`, `"sell"`}, "type": {`"market"`, `"limit"`, `"stop_loss"`, `"stop_loss_limit"`, `"take_profit"`, `"take_profit_stop_loss"`},
	"amount": {`"1"`, `"0.50"`}, "cash_amount": {`"10"`}, "limit_price": {`"65000.10"`}, "trigger_price": {`"1"`}, "stop_loss_price": {`"1"`}, "take_profit_price": {`"1"`},
	"trigger_price_type": {`"trade_price"`, `"mark_price"`}, "time_in_force": {`"GTC"`, `"IOC"`, `"GTD"`}, "expire_time": {`"2030-01-01T00:00:00.000000Z"`, `1893456000000`},
	"post_only": {`true`, `false`}, "reduce_only": {`true`, `false`}, "leverage": {`5`, `"5"`}, "reference_id": {`"r-1"`}, "order_code": {`"00000000-0000-8000-8000-00000000000a"`},
}

var (
	entryMembers = []string{"symbol", "action", "type", "amount", "cash_amount", "limit_price", "trigger_price", "stop_loss_price", "take_profit_price", "trigger_price_type",
		"time_in_force", "expire_time", "post_only", "reduce_only", "leverage", "reference_id"}
	amendMembers = []string{"amount", "limit_price", "trigger_price", "stop_loss_price", "take_profit_price", "expire_time"}
	nameMembers  = []string{"order_code", "reference_id"}
)

// shown describes what was read of a body: the value, or the errors.
func shown(value any, err error) string {
	if err != nil {
		return faultsOf(err)
	}
	return fmt.Sprintf("%+v", value)
}

// shownAmendment is shown for an amendment, whose members are pointers.
func shownAmendment(p *domain.AmendOrder, err error) string {
	show := func(v any) string { return fmt.Sprintf("%v", v) }
	s := []string{p.CustomerCode, p.OrderCode.String(), p.ReferenceID}
	if p.Amount != nil {
		s = append(s, "amount", show(*p.Amount))
	}
	if p.LimitPrice != nil {
		s = append(s, "limit", show(*p.LimitPrice))
	}
	if p.TriggerPrice != nil {
		s = append(s, "trigger", show(*p.TriggerPrice))
	}
	if p.StopLossPrice != nil {
		s = append(s, "stop", show(*p.StopLossPrice))
	}
	if p.TakeProfitPrice != nil {
		s = append(s, "take", show(*p.TakeProfitPrice))
	}
	if p.ExpireTime != nil {
		s = append(s, "expire", show(*p.ExpireTime))
	}
	return shown(s, err)
}

// everyKind reads members of every type with a Form.
func everyKind(f *input.Form) []any {
	return []any{
		f.String("symbol", input.MaxLength(20)), f.OptionalEnum("action", "buy", "sell"), f.Decimal("amount"), f.OptionalDecimal("limit_price", form.NotNegative, form.MaxDecimals(2)),
		f.OptionalMoney("cash_amount"), f.Notional("trigger_price"), f.Integer("stop_loss_price", -5, 100), f.OptionalInteger("leverage", 1, 13), f.OptionalWhole("take_profit_price"),
		f.Leverage("trigger_price_type", 13), f.OptionalBool("post_only"), f.OptionalTime("expire_time"), f.Bound("time_in_force", true), f.ID("order_code"),
		f.AnyText("type"), f.OptionalText("reference_id"), f.OptionalEnums("reduce_only", "buy"),
	}
}

// TestFrozenFaults compares what is read of random bodies, valid or not, with what earlier builds read: the payloads, and
// each error with its code, kind, words, path, and place.
func TestFrozenFaults(t *testing.T) {
	digests := map[string]*recordtest.Digest{"entries": {}, "amendments": {}, "names": {}, "all kinds": {}}
	sound := map[string]int{}
	add := func(name, body, shown string, err error) {
		digests[name].Add([]byte(fmt.Sprintf("%q\n%s\n", body, shown)))
		if err == nil {
			sound[name]++
		}
	}
	for seed := range uint64(6_000) {
		r := rand.New(rand.NewPCG(seed, 18))
		body := drawBody(r, entryMembers, orderMembers)
		if r.IntN(3) == 0 {
			body = strings.Replace(body, "{", `{"symbol":"B","action":"buy","type":"limit","amount":"1","limit_price":"2"`+map[bool]string{true: ","}[r.IntN(2) == 0], 1)
		}
		payload, err := readEntry([]byte(body))
		add("entries", body, shown(payload, err), err)
		body = drawBody(r, append(nameMembers, amendMembers...), orderMembers)
		amendment, err := readAmended([]byte(body))
		add("amendments", body, shownAmendment(amendment, err), err)
		body = drawBody(r, nameMembers, orderMembers)
		code, reference, err := readNamed([]byte(body))
		add("names", body, shown([]string{code.String(), reference}, err), err)
		body = drawBody(r, append(entryMembers, "order_code"), orderMembers)
		f := input.Body([]byte(body), nil)
		values := everyKind(f)
		err = f.Done()
		add("all kinds", body, fmt.Sprintf("%+v\n%s", values, shown("", err)), err)
	}
	for name, d := range digests {
		d.Check(t, "random "+name)
		t.Logf("%s: %d sound", name, sound[name])
		if sound[name] == 0 && name != "all kinds" {
			t.Errorf("none of the %s was without an error", name)
		}
	}
}
