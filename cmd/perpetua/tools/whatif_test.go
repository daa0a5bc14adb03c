package tools

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/perpetua-exchange/perpetua/cmd/perpetua/settings"
	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/market"
	"github.com/perpetua-exchange/perpetua/domain/order"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/domain/trading"
	"github.com/perpetua-exchange/perpetua/streams/journal"
	"github.com/perpetua-exchange/perpetua/streams/record"
	"github.com/perpetua-exchange/perpetua/streams/transfer"
)

// oneTrade returns a journal of trading in which Bea sells 0.01 BTC to Ann at 50,000 USDC. The trade is in record 9.
func oneTrade(t *testing.T) (records []*kgo.Record) {
	t.Helper()
	id, state := scalar.ID{9}, trading.NewState()
	at := decide.Stamp{Journal: id, Time: 1_800_000_000_000_000}
	add := func(c decide.Recorded, d decide.Decision) {
		r := &record.Record{Sequence: at.Sequence, Prev: at.Prev, Time: at.Time, Command: c, Input: d.Input, Outcome: decide.Accepted, Events: d.Events}
		value, err := record.Encode(nil, r)
		if err != nil {
			t.Fatal(err)
		}
		state.Evolve(at, c, r.Outcome, d.Events)
		k := journal.KafkaRecord("trading", "trading", 0, id, r, value)
		k.Offset, at.Prev = at.Sequence, sha256.Sum256(value)
		at.Sequence++
		records = append(records, k)
	}
	add(decide.Recorded{Type: record.TypeGenesis, Actor: decide.Engine}, decide.Decision{Events: []decide.Event{&record.Genesis{Journal: "trading", JournalID: id, Partitions: 1}}})
	add(decide.Recorded{Type: record.TypeTermStarted, Actor: decide.Engine}, decide.Decision{Events: []decide.Event{&record.TermStarted{Term: 1, Node: "n"}}})
	number := func(text string) fixed.Decimal {
		d, err := fixed.ParseDecimal(text)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	do := func(p decide.Payload) {
		t.Helper()
		c := decide.Command{ID: scalar.ID{1}, Type: p.CommandType(), Actor: decide.Actor{Sub: "operator", Broker: "alpha"}, Payload: p}
		d, err := state.Decide(at, c)
		if err != nil {
			t.Fatal(err)
		}
		add(c.Recorded(), d)
	}
	do(&trading.ListInstrument{Instrument: market.Instrument{Symbol: "BTCUSDC_PERP", Underlying: "BTC", QuoteCurrency: "USDC", SettlementCurrency: "USDC",
		PriceTick: number("0.1"), AmountStep: number("0.001"), MinAmount: number("0.001"), MaxAmount: number("1000"), ContractSize: number("1"),
		InitMarginReq: number("5"), MaintMarginReq: number("2.5"), FundingIntervalSeconds: 3600, PriceBand: number("5"), LimitBand: number("20"), MakerFee: number("2"), TakerFee: number("5")}})
	do(&trading.SetIndexPrice{Symbol: "BTCUSDC_PERP", Price: number("50000")})
	for _, customer := range []string{"ann", "bea"} {
		do(&trading.RegisterCustomer{CustomerCode: customer})
		do(&trading.MakeDeposit{CustomerCode: customer, Currency: "USDC", Amount: 1000 * fixed.Unit})
	}
	do(&trading.PlaceOrder{CustomerCode: "bea", Symbol: "BTCUSDC_PERP", Action: order.Sell, Type: order.Limit, Amount: number("0.01"), LimitPrice: number("50000")})
	do(&trading.PlaceOrder{CustomerCode: "ann", Symbol: "BTCUSDC_PERP", Action: order.Buy, Type: order.Market, Amount: number("0.01")})
	return records
}

// tradeLog writes the journal of oneTrade to a file.
func tradeLog(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "log.jsonl")
	if _, err := transfer.Copy(t.Context(), trading.Rules(), given{records: oneTrade(t)}, transfer.Target(path, "trading"), nil); err != nil {
		t.Fatal(err)
	}
	if err := transfer.Finish(path); err != nil {
		t.Fatal(err)
	}
	return path
}

// whatIf runs `perpetua audit what-if`.
func whatIf(t *testing.T, args ...string) (out string, err error) {
	t.Helper()
	return auditWith(t, "what-if", args...)
}

// TestWhatIf reads a file. Without an override nothing differs.
func TestWhatIf(t *testing.T) {
	path := tradeLog(t)
	for _, mode := range []string{"--cumulative=false", "--cumulative"} {
		if out, err := whatIf(t, "--file", path, mode); err != nil || !strings.Contains(out, " 8 decided the same\n") || strings.Contains(out, ":\n") {
			t.Errorf("%v\n%s", err, out)
		}
		out, err := whatIf(t, "--file", path, mode, "--set", "BTCUSDC_PERP.taker_fee=10", "--differences", "5")
		for _, want := range []string{"decided again from 0 on with BTCUSDC_PERP.taker_fee=10, each", "2 not decided: the genesis and the starts of terms", "1 with other amounts of money\n", "ann:\n  trade_fee -0.25 → -0.5, first at record 9\n",
			"the venue's account fees:\n", "record 9, 2027-01-15T08:00:00.000000Z, order.place of ann: "} {
			if err != nil || !strings.Contains(out, want) {
				t.Errorf("%v: it does not say %q:\n%s", err, want, out)
			}
		}
		out, err = whatIf(t, "--file", path, mode, "--set", "BTCUSDC_PERP.price_band=1", "--set", "BTCUSDC_PERP.max_amount=0.009", "--json", "--from", "9")
		var found struct {
			Equal     bool
			Set       []string
			Different map[string]int
			Accounts  []struct {
				CustomerCode string `json:"customer_code"`
				Refused      struct {
					Number int
					First  struct{ Sequence int64 }
				}
			}
		}
		if failed := json.Unmarshal([]byte(out), &found); err != nil || failed != nil || found.Equal || len(found.Set) != 2 || found.Different["acceptance"] != 1 ||
			found.Accounts[0].CustomerCode != "ann" || found.Accounts[0].Refused.Number != 1 || found.Accounts[0].Refused.First.Sequence != 9 {
			t.Errorf("%v %v\n%s", err, failed, out)
		}
	}
}

// TestWhatIfSpan: the summary names the last record under the overrides, and a count of one is in the singular.
func TestWhatIfSpan(t *testing.T) {
	path := tradeLog(t)
	for mode, want := range map[string]string{
		"--cumulative=false": "from 8 to 9 with BTCUSDC_PERP.max_amount=0.009, each on the recorded state\n",
		"--cumulative":       "from 8 on with BTCUSDC_PERP.max_amount=0.009 up to 9, each on the state that follows from the earlier decisions\n",
	} {
		out, err := whatIf(t, "--file", path, mode, "--set", "BTCUSDC_PERP.max_amount=0.009", "--from", "8", "--to", "9")
		if err != nil || !strings.Contains(out, want) || !strings.Contains(out, "  1 accepted command is refused, at record 8\n") {
			t.Errorf("%v: it does not say %q:\n%s", err, want, out)
		}
	}
}

// TestWhatIfUsage refuses arguments that do not go together, and overrides that the venue would refuse.
func TestWhatIfUsage(t *testing.T) {
	path := tradeLog(t)
	for _, c := range []struct {
		args []string
		says string
	}{
		{[]string{"--file", "a", "--archive", "file:///b"}, "two logs"},
		{[]string{"--archive", "nonsense"}, "--archive"},
		{[]string{"--from", "-1"}, "must not be negative"},
		{[]string{"--set", "BTCUSDC_PERP"}, "SYMBOL.parameter=value"},
		{[]string{"--set", "BTCUSDC_PERP.fee=1"}, "BTCUSDC_PERP.fee is not a parameter"},
		{[]string{"--file", path, "--set", "ETHUSDC_PERP.taker_fee=1"}, "ETHUSDC_PERP is not an instrument"},
		{[]string{"--file", path, "--set", "BTCUSDC_PERP.taker_fee=101"}, "record 2: under the override of taker_fee, BTCUSDC_PERP.taker_fee must be"},
		{[]string{"--file", path, "--from", "10"}, "record 10 is after the last record, 9"},
		{[]string{"--file", path, "--to", "10"}, "record 10 is after the last record, 9"},
		{[]string{"--file", path, "--from", "5", "--to", "4"}, "record 4 comes before record 5"},
		{[]string{"more"}, "unexpected argument"},
	} {
		var wrong *settings.UsageError
		if _, err := whatIf(t, c.args...); !errors.As(err, &wrong) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, and not %q", c.args, err, c.says)
		}
	}
}
