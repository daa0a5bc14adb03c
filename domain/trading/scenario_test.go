package trading

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/ledger"
	"github.com/perpetua-exchange/perpetua/domain/market"
	"github.com/perpetua-exchange/perpetua/domain/order"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

// scenarioFiles are the scenarios: the venue's own rules, and in venues/ examples that others publish.
func scenarioFiles(t *testing.T) []string {
	t.Helper()
	own, err := filepath.Glob("testdata/*.scenario")
	others, otherErr := filepath.Glob("testdata/venues/*.scenario")
	if err := errors.Join(err, otherErr); err != nil || len(own) == 0 || len(others) == 0 {
		t.Fatalf("no scenarios: %v", err)
	}
	return append(own, others...)
}

// TestScenarios runs every scenario. The files' language is told in testdata/README.md. After every
// record the journal of the test checks what must always hold (see checkState), and at the end that a replay of the
// encoded records gives the same state.
func TestScenarios(t *testing.T) {
	for _, file := range scenarioFiles(t) {
		name, _ := filepath.Rel("testdata", strings.TrimSuffix(file, ".scenario"))
		t.Run(name, func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			runScenario(t, file, string(text))
		})
	}
}

// runScenario runs a file's lines, with something done before each if need be.
func runScenario(t *testing.T, file, text string, before ...func(*testJournal)) {
	s := &scenario{labels: make(map[string]scalar.ID), orders: make(map[scalar.ID]order.Order)}
	where := &located{T: t, file: file}
	s.testJournal = newTestJournal(where)
	if strings.HasPrefix(filepath.Base(file), "rules_1_") {
		s.testJournal = oldTestJournal(where)
	}
	s.begun = int64(len(s.records))
	for n, line := range strings.Split(text, "\n") {
		where.line = n + 1
		line, _, _ = strings.Cut(line, "#")
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		lines, err := expand(line)
		if err != nil {
			where.Fatalf("%v", err)
		}
		for _, line := range lines {
			for _, do := range before {
				do(s.testJournal)
			}
			s.run(line)
		}
	}
	s.noticed()
	s.checkReplay()
}

// located tells the scenario's line with every failure.
type located struct {
	*testing.T
	file string
	line int
}

func (l *located) Fatalf(format string, args ...any) {
	l.T.Helper()
	l.T.Fatalf("%s:%d: %s", l.file, l.line, fmt.Sprintf(format, args...))
}

// scenario is a run of one file.
type scenario struct {
	*testJournal
	words  []string
	labels map[string]scalar.ID // of orders and withdrawals
	orders map[scalar.ID]order.Order
	begun  int64 // the records before its first
	seen   int   // records whose orders were noted
	told   int   // records whose trades were asked for
	// stepwise is set by a scenario in which what blocks is done by its own steps alone, before the next command at last.
	stepwise bool
	last     decide.Decision
	err      error
	label    string
	named    map[string]string // parameters of the instrument being listed
	pending  bool              // the last command's outcome was not looked at yet
	fired    []scalar.ID       // orders, since the scenario last asked
	rates    []*FundingFixed   // likewise
	worked   []string          // the steps, likewise
}

// noticed fails if the last command was refused or rejected and the scenario did not say so.
func (s *scenario) noticed() {
	if s.pending && s.err != nil {
		s.t.Fatalf("the last command was refused: %v", s.err)
	}
	if s.pending && s.last.Outcome == decide.Rejected {
		s.t.Fatalf("the last command was rejected: %s", s.orders[s.labels[s.label]].Reason)
	}
	s.pending = false
}

func (s *scenario) run(line string) {
	if strings.HasPrefix(line, "->") {
		s.words = strings.Fields(line)[1:]
		s.pending = false
		s.outcome()
		s.end()
		return
	}
	s.noticed()
	s.label = "it"
	if label, rest, ok := strings.Cut(line, ": "); ok {
		s.label, line = label, rest
	}
	s.words = strings.Fields(line)
	switch verb := s.word(); verb {
	case "wait", "later":
		s.now += s.span(s.word())
		if verb == "wait" {
			s.drain()
		}
	case "step":
		s.step(s.accept("single"))
	case "steps-take":
		s.pause = s.span(s.word())
	case "stepwise":
		s.stepwise = true
	case "set-aside":
		s.testJournal.append(decide.Recorded{Type: "engine.step", Actor: decide.Engine}, s.state.SetAside(s.stamp(), "it failed"))
	case "position", "balance", "available", "withdrawable", "order", "orders", "book", "venue", "last", "margin", "status", "profile", "fired", "due", "trades", "mark", "estimate", "fixed", "worked", "alarms", "rows", "proposals":
		for s.state.Due(s.now) == decide.Blocking && verb != "due" && !s.stepwise {
			s.testJournal.step(s.single)
		}
		s.note()
		s.expect(verb)
	default:
		s.command(verb)
	}
	s.note()
	s.end()
}

// note keeps the views of orders from the records since the last time.
func (s *scenario) note() {
	for ; s.seen < len(s.records); s.seen++ {
		for _, e := range s.records[s.seen].decode(s.t) {
			switch e := e.(type) {
			case OrderEvent:
				s.orders[e.After().Code] = *e.After()
			case *TriggerFired:
				s.fired = append(s.fired, e.OrderCode)
			case *FundingFixed:
				s.rates = append(s.rates, e)
			case *Step:
				s.worked = append(s.worked, string(e.Work))
			}
		}
	}
}

func (s *scenario) command(verb string) {
	c := s.parse(verb)
	s.end()
	s.last, s.err = s.do(c)
	s.pending = true
	if s.err != nil || s.last.Repeated {
		return
	}
	for _, e := range s.last.Events {
		switch e := e.(type) {
		case OrderEvent:
			if payload, ok := c.Payload.(*PlaceOrder); ok && (e.After().CustomerCode != payload.CustomerCode || e.After().Reason == order.SelfTrade) {
				continue
			}
			if _, ok := c.Payload.(*PlaceOrder); ok {
				s.labels[s.label] = e.After().Code
				return
			}
		case *WithdrawalRequested:
			s.labels[s.label] = e.Code
		case *decide.ProposalMade:
			s.labels[s.label] = e.ID
		}
	}
}

// outcome holds the last command against what the scenario says of it.
func (s *scenario) outcome() {
	switch first := s.word(); first {
	case "refused":
		code, refusal := s.word(), new(decide.Refusal)
		if !errors.As(s.err, &refusal) || refusal.Code != code {
			s.t.Fatalf("refused %v, not with %s", s.err, code)
		}
	case "repeated":
		if s.err != nil || !s.last.Repeated {
			s.t.Fatalf("not repeated: %v", s.err)
		}
		if len(s.words) > 0 {
			s.same("record", strconv.FormatInt(s.last.Repeat-s.begun, 10), s.word())
		}
	case "proposed", "confirmed", "rejected-proposal", "withdrawn", "voided":
		s.proposalIs(first)
	case "canceled-orders":
		for _, e := range s.last.Events {
			if e, ok := e.(*WorkFinished); ok {
				s.same("canceled", strconv.Itoa(e.Canceled), s.word())
				return
			}
		}
		s.t.Fatalf("no mass cancel was finished: %v", s.err)
	default:
		if s.err != nil {
			s.t.Fatalf("the command was refused: %v", s.err)
		}
		s.words = append([]string{first}, s.words...)
		s.orderIs(s.orders[s.labels[s.label]])
	}
}

// orderIs holds an order against: status [reason] [filled AMOUNT] [at AVERAGE] [of AMOUNT] [quote MONEY] [price PRICE].
func (s *scenario) orderIs(o order.Order) {
	s.same("status", string(o.Status), s.word())
	if o.Reason != "" {
		s.same("reason", string(o.Reason), s.word())
	}
	for len(s.words) > 0 {
		switch word := s.word(); word {
		case "filled":
			s.same("filled", o.FilledAmount.String(), s.word())
		case "at":
			s.same("average", o.AverageFillPrice.String(), s.word())
		case "of":
			s.same("amount", o.Amount.String(), s.word())
		case "quote":
			s.same("quote", o.FilledQuote.String(), s.word())
		case "price":
			s.same("price", o.LimitPrice.String(), s.word())
		case "trigger":
			s.same("trigger", o.TriggerPrice.String(), s.word())
		case "stop":
			s.same("stop", o.StopLossPrice.String(), s.word())
		case "profit":
			s.same("profit", o.TakeProfitPrice.String(), s.word())
		default:
			s.t.Fatalf("what is %q of an order?", word)
		}
	}
}

// expect holds the state against what the scenario says of it.
func (s *scenario) expect(what string) {
	switch what {
	case "position":
		p, _ := s.state.Position(s.word(), s.word())
		s.same("position", p.Amount.String(), s.word())
		for len(s.words) > 0 {
			switch s.word() {
			case "cost":
				s.same("cost", p.Cost.String(), s.word())
			case "entry":
				s.same("entry price", p.EntryPrice.String(), s.word())
			case "unrealised":
				s.same("unrealised", p.UnrealizedPnL.String(), s.word())
			case "margin":
				s.same("initial margin", p.InitialMargin.String(), s.word())
			case "maintenance":
				s.same("maintenance margin", p.MaintenanceMargin.String(), s.word())
			case "liquidation":
				s.same("liquidation price", p.LiquidationPrice.String(), s.word())
			case "leverage":
				s.same("leverage", strconv.Itoa(p.Leverage), s.word())
			default:
				s.t.Fatalf("a position has an amount, cost, entry, unrealised, margin, maintenance, liquidation, leverage")
			}
		}
	case "balance":
		m, _ := s.state.Balance(s.word())
		s.same("balance", m.String(), s.word())
	case "available", "withdrawable":
		m, _ := s.state.Summary(s.word())
		if what == "available" {
			s.same("available", m.AvailableMargin.String(), s.word())
		} else {
			s.same("withdrawable", m.Withdrawable.String(), s.word())
		}
	case "margin":
		s.summary()
	case "order":
		label := s.word()
		s.orderIs(s.orders[s.labels[label]])
	case "orders":
		s.same("open orders", strconv.Itoa(len(s.state.OpenOrders(s.word()))), s.word())
	case "book":
		s.bookIs(s.word())
	case "venue":
		s.same("venue's account", s.state.VenueBalance(ledger.Account(s.word())).String(), s.word())
	case "proposals":
		s.proposalsAre()
	case "last":
		s.same("last price", s.state.LastPrice(s.word()).String(), s.word())
	case "status":
		status, _ := s.state.Status(s.word())
		s.same("status", string(status), s.word())
	case "profile":
		s.profile()
	case "fired":
		s.firedIs()
	case "due":
		entries, _ := s.state.DueEntries(0, 1000)
		for _, e := range entries {
			if !s.state.NamesDueWork(e.Entry) {
				s.t.Fatalf("%s is on the due list, and no name of due work", e.Entry)
			}
		}
		due := slices.DeleteFunc(entries, func(e decide.DueEntry) bool { return e.Time > s.now })
		s.same("due entries", strconv.Itoa(len(due)), s.word())
	case "trades":
		s.same("trades", s.trades(), strings.Join(s.words, " "))
		s.words = nil
	default:
		s.expectPrices(what)
	}
}

// trades returns the trades since they were asked for last: TAKER>MAKER:AMOUNT@PRICE, with the type if it is another than
// trade, and | between those of different records.
func (s *scenario) trades() string {
	var records []string
	for ; s.told < len(s.records); s.told++ {
		var trades []string
		for _, e := range s.records[s.told].decode(s.t) {
			if e, ok := e.(*TradeExecuted); ok {
				t := fmt.Sprintf("%s>%s:%s@%s", e.Taker.CustomerCode, e.Maker.CustomerCode, e.Amount, e.Price)
				if e.Type != Trade {
					t += ":" + string(e.Type)
				}
				trades = append(trades, t)
			}
		}
		if len(trades) > 0 {
			records = append(records, strings.Join(trades, " "))
		}
	}
	return strings.Join(records, " | ")
}

// summary: margin CUSTOMER field value …
func (s *scenario) summary() {
	m, _ := s.state.Summary(s.word())
	for len(s.words) > 0 {
		field := s.word()
		value, ok := map[string]string{"equity": m.TotalEquity.String(), "used": m.UsedMargin.String(), "orders": m.OrderMargin.String(),
			"maintenance": m.MaintenanceMargin.String(), "available": m.AvailableMargin.String(), "ratio": m.MarginRatio.String(),
			"risk": string(m.RiskState), "unrealised": m.UnrealizedPnL.String()}[field]
		if !ok {
			s.t.Fatalf("what is %q of an account?", field)
		}
		s.same(field, value, s.word())
	}
}

// firedIs: fired LABEL… or fired nothing
func (s *scenario) firedIs() {
	got := []string{}
	for _, code := range s.fired {
		name := "?"
		for label, of := range s.labels {
			if of == code && label != "it" {
				name = label
			}
		}
		got = append(got, name)
	}
	if len(got) == 0 {
		got = append(got, "nothing")
	}
	s.same("what fired", strings.Join(got, " "), strings.Join(s.words, " "))
	s.words, s.fired = nil, nil
}

// profile: profile CUSTOMER initial maintenance [SYMBOL leverage margin]…
func (s *scenario) profile() {
	p, _ := s.state.MarginProfile(s.word())
	s.same("initial", p.InitialMargin.String(), s.word())
	s.same("maintenance", p.MaintenanceMargin.String(), s.word())
	for _, m := range p.Instruments {
		s.same("symbol", m.Symbol, s.word())
		s.same("leverage", strconv.Itoa(m.Leverage), s.word())
		s.same("margin", m.InitialMargin.String(), s.word())
	}
}

// bookIs: book SYMBOL bids AMOUNT@PRICE… asks AMOUNT@PRICE…
func (s *scenario) bookIs(symbol string) {
	bids, asks := s.state.Depth(symbol, 0)
	got := []string{"bids"}
	for _, l := range bids {
		got = append(got, l.Amount.String()+"@"+l.Price.String())
	}
	got = append(got, "asks")
	for _, l := range asks {
		got = append(got, l.Amount.String()+"@"+l.Price.String())
	}
	s.same("book", strings.Join(got, " "), strings.Join(s.words, " "))
	s.words = nil
}

func (s *scenario) same(what, got, want string) {
	if got != want {
		s.t.Fatalf("%s is %s, not %s", what, got, want)
	}
}

// word takes the next word.
func (s *scenario) word() string {
	if len(s.words) == 0 {
		s.t.Fatalf("the line is too short")
	}
	w := s.words[0]
	s.words = s.words[1:]
	return w
}

// accept takes the next word if it is the given one.
func (s *scenario) accept(word string) bool {
	if len(s.words) > 0 && s.words[0] == word {
		s.words = s.words[1:]
		return true
	}
	return false
}

// end fails if the line says more than was understood.
func (s *scenario) end() {
	if len(s.words) > 0 {
		s.t.Fatalf("what does %q mean here?", strings.Join(s.words, " "))
	}
}

func (s *scenario) decimal(w string) fixed.Decimal {
	d, err := fixed.ParseDecimal(w)
	if err != nil {
		s.t.Fatalf("%s: %v", w, err)
	}
	return d
}

func (s *scenario) money(w string) fixed.Money {
	m, ok := fixed.MoneyOf(s.decimal(w))
	if !ok {
		s.t.Fatalf("%s is no amount of money", w)
	}
	return m
}

func (s *scenario) span(w string) scalar.Time {
	d, err := time.ParseDuration(w)
	if err != nil {
		s.t.Fatalf("%v", err)
	}
	return scalar.Time(d.Microseconds())
}

func (s *scenario) number(w string) int {
	n, err := strconv.Atoi(w)
	if err != nil {
		s.t.Fatalf("%v", err)
	}
	return n
}

// btc is the instrument that scenarios list, with what they say otherwise.
func btc() market.Instrument {
	d := func(coef int64, scale uint8) fixed.Decimal { return fixed.Decimal{Coef: coef, Scale: scale} }
	return market.Instrument{Symbol: "BTCUSDC_PERP", Underlying: "BTC", QuoteCurrency: "USDC", SettlementCurrency: "USDC",
		PriceTick: d(1, 1), AmountStep: d(1, 3), MinAmount: d(1, 3), MaxAmount: d(1000, 0), ContractSize: d(1, 0),
		InitMarginReq: d(500, 2), MaintMarginReq: d(250, 2), MaxLeverage: 13, FundingIntervalSeconds: 3600,
		PriceBand: d(500, 2), LimitBand: d(2000, 2), MakerFee: d(2, 0), TakerFee: d(5, 0)}
}
