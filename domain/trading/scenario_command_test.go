package trading

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/market"
	"github.com/perpetua-exchange/perpetua/domain/order"
)

// operator is on whose behalf a scenario gives the venue's own commands.
var operator = decide.Actor{Sub: "operator", Broker: "venue"}

// parse makes the command that a line says. Its fingerprint is the line's.
func (s *scenario) parse(verb string) decide.Command {
	sum := sha256.Sum256([]byte(verb + strings.Join(s.words, " ")))
	c := decide.Command{Actor: operator, Kept: decide.Kept{Fingerprint: hex.EncodeToString(sum[:])}}
	c.Type, c.Ask = s.ask(verb, &c)
	for len(s.words) > 0 {
		switch s.words[0] {
		case "by": // by BROKER: on behalf of another broker than the customer's
			s.word()
			c.Actor = decide.Actor{Sub: "trader", Broker: s.word()}
		case "key": // key KEY: with an Idempotency-Key
			s.word()
			c.Kept.Key = s.word()
		case "for": // for CUSTOMER: with a token for one account
			s.word()
			c.Actor.Customer = s.word()
		default:
			return c
		}
	}
	return c
}

func (s *scenario) ask(verb string, c *decide.Command) (string, any) {
	switch verb {
	case "list":
		return CommandListInstrument, s.listInstrument()
	case "change":
		return CommandChangeInstrument, s.changeInstrument()
	case "withdraw-instrument":
		return CommandWithdrawInstrument, &WithdrawInstrument{Symbol: s.word()}
	case "index":
		return CommandSetIndexPrice, &SetIndexPrice{Symbol: s.word(), Price: s.decimal(s.word())}
	case "customer":
		ask := &RegisterCustomer{CustomerCode: s.word(), Broker: "alpha"}
		if s.accept("of") {
			ask.Broker = s.word()
		}
		return CommandRegisterCustomer, ask
	case "deposit", "withdraw":
		return s.transferAsk(verb)
	case "complete":
		return CommandCompleteWithdrawal, &CompleteWithdrawal{Code: s.labels[s.word()]}
	case "cancel-withdrawal":
		return CommandCancelWithdrawal, &CancelWithdrawal{Code: s.labels[s.word()]}
	case "fees":
		ask := &SetFeeProfile{CustomerCode: s.word(), Symbol: s.word(), MakerFee: s.decimal(s.word()), TakerFee: s.decimal(s.word()), Operator: true}
		if len(s.words) > 0 { // by BROKER
			ask.Operator = false
		}
		return CommandSetFeeProfile, ask
	case "margins":
		ask := &SetMarginProfile{CustomerCode: s.word()}
		if s.accept("leverage") {
			ask.Leverage = s.number(s.word())
		} else {
			ask.InitialMargin, ask.MaintenanceMargin = s.decimal(s.word()), s.decimal(s.word())
		}
		return CommandSetMarginProfile, ask
	case "amend":
		return CommandAmendOrder, s.amendAsk(c)
	case "cancel":
		s.label = s.word()
		o := s.orders[s.labels[s.label]]
		c.Actor = trader(o.Broker)
		return CommandCancelOrder, &CancelOrder{CustomerCode: o.CustomerCode, OrderCode: o.Code}
	case "cancel-all":
		ask := &CancelAll{CustomerCode: s.word()}
		c.Actor = trader(s.broker(ask.CustomerCode))
		if len(s.words) > 0 && strings.HasSuffix(s.words[0], "_PERP") {
			ask.Symbol = s.word()
		}
		return CommandCancelAll, ask
	case "cancel-all-after":
		ask := &SetCancelAllAfter{CustomerCode: s.word(), TimeoutSeconds: s.number(s.word())}
		c.Actor = trader(s.broker(ask.CustomerCode))
		return CommandSetCancelAllAfter, ask
	case "put-back":
		return CommandPutBackDue, &PutBackDue{Entry: s.word() + "/" + s.labels[s.word()].String()}
	case "rules":
		return CommandActivateRules, &ActivateRules{Rules: s.number(s.word())}
	}
	c.Actor = trader(s.broker(verb))
	return CommandPlaceOrder, s.placeAsk(verb)
}

func trader(broker string) decide.Actor { return decide.Actor{Sub: "trader", Broker: broker} }

func (s *scenario) broker(customer string) string {
	broker, _ := s.state.CustomerBroker(customer)
	return broker
}

func (s *scenario) transferAsk(verb string) (string, any) {
	customer, amount, reference, in := s.word(), s.money(s.word()), "", currency
	if s.accept("as") {
		reference = s.word()
	}
	if s.accept("in") {
		in = s.word()
	}
	if verb == "deposit" {
		return CommandMakeDeposit, &MakeDeposit{CustomerCode: customer, Currency: in, Amount: amount, ReferenceID: reference}
	}
	return CommandRequestWithdrawal, &RequestWithdrawal{CustomerCode: customer, Currency: in, Amount: amount, ReferenceID: reference}
}

// placeAsk: CUSTOMER buys|sells AMOUNT [USDC of] SYMBOL at PRICE|market [GTC|IOC|FOK|GTD +SPAN] [post-only]
// [reduce-only] [leverage N] [as REFERENCE]
func (s *scenario) placeAsk(customer string) *PlaceOrder {
	ask := &PlaceOrder{CustomerCode: customer}
	switch s.word() {
	case "buys":
		ask.Action = order.Buy
	case "sells":
		ask.Action = order.Sell
	default:
		s.t.Fatalf("a customer buys or sells")
	}
	amount := s.word()
	if s.accept("USDC") {
		ask.CashAmount = s.money(amount)
		s.accept("of")
	} else {
		ask.Amount = s.decimal(amount)
	}
	ask.Symbol = s.word()
	ask.Type = order.Market
	if !s.accept("at") {
		s.t.Fatalf("at what price?")
	}
	if price := s.word(); price != "market" {
		ask.Type, ask.LimitPrice = order.Limit, s.decimal(price)
	}
	for len(s.words) > 0 {
		switch word := s.words[0]; word {
		case "GTC", "IOC", "FOK", "GTD":
			s.word()
			ask.TimeInForce = order.TimeInForce(word)
			if word == "GTD" {
				ask.ExpireTime = s.now + s.span(s.word())
			}
		case "post-only":
			s.word()
			ask.PostOnly = true
		case "reduce-only":
			s.word()
			ask.ReduceOnly = true
		case "leverage":
			s.word()
			ask.Leverage = s.number(s.word())
		case "as":
			s.word()
			ask.ReferenceID = s.word()
		case "stop":
			s.word()
			ask.Type, ask.TriggerPrice = order.StopLoss, s.decimal(s.word())
		default:
			return ask
		}
	}
	return ask
}

func (s *scenario) amendAsk(c *decide.Command) *AmendOrder {
	s.label = s.word()
	o := s.orders[s.labels[s.label]]
	c.Actor = trader(o.Broker)
	ask := &AmendOrder{CustomerCode: o.CustomerCode, OrderCode: s.labels[s.label]}
	for len(s.words) > 0 {
		switch s.words[0] {
		case "price":
			s.word()
			ask.LimitPrice = some(s.decimal(s.word()))
		case "amount":
			s.word()
			ask.Amount = some(s.decimal(s.word()))
		case "trigger":
			s.word()
			ask.TriggerPrice = some(s.decimal(s.word()))
		case "expires":
			s.word()
			ask.ExpireTime = some(s.now + s.span(s.word()))
		default:
			return ask
		}
	}
	return ask
}

func some[T any](v T) *T { return &v }

// listInstrument: list SYMBOL [field value]… ; what is not said is as with BTCUSDC_PERP.
func (s *scenario) listInstrument() *ListInstrument {
	i := btc()
	i.Symbol = s.word()
	i.Underlying = strings.TrimSuffix(i.Symbol, "USDC_PERP")
	change := s.changes()
	i.Tiers = nil
	for _, f := range []struct {
		name  string
		field *fixed.Decimal
	}{{"tick", &i.PriceTick}, {"step", &i.AmountStep}, {"size", &i.ContractSize}} {
		if v, ok := s.named[f.name]; ok {
			*f.field = s.decimal(v)
		}
	}
	change.Symbol = i.Symbol
	return &ListInstrument{Instrument: change.applyTo(i)}
}

func (s *scenario) changeInstrument() *ChangeInstrument {
	symbol := s.word()
	ask := s.changes()
	ask.Symbol = symbol
	return ask
}

// changes reads pairs of a parameter and its value.
func (s *scenario) changes() *ChangeInstrument {
	ask := &ChangeInstrument{}
	s.named = make(map[string]string)
	for len(s.words) > 0 {
		name, value := s.word(), s.word()
		s.named[name] = value
		switch name {
		case "status":
			ask.Status = some(market.Status(value))
		case "min":
			ask.MinAmount = some(s.decimal(value))
		case "max":
			ask.MaxAmount = some(s.decimal(value))
		case "initial":
			ask.InitMarginReq = some(s.decimal(value))
		case "maintenance":
			ask.MaintMarginReq = some(s.decimal(value))
		case "leverage":
			ask.MaxLeverage = some(s.number(value))
		case "band":
			ask.PriceBand = some(s.decimal(value))
		case "limit-band":
			ask.LimitBand = some(s.decimal(value))
		case "maker":
			ask.MakerFee = some(s.decimal(value))
		case "taker":
			ask.TakerFee = some(s.decimal(value))
		case "tier": // UP_TO/INITIAL/MAINTENANCE; UP_TO is - for the last
			part := strings.Split(value, "/")
			tier := market.Tier{InitMarginReq: s.decimal(part[1]), MaintMarginReq: s.decimal(part[2])}
			if part[0] != "-" {
				tier.UpTo = s.money(part[0])
			}
			ask.Tiers = append(ask.Tiers, tier)
		case "tick", "step", "size":
		default:
			s.t.Fatalf("what is %q of an instrument?", name)
		}
	}
	return ask
}
