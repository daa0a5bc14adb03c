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
	c := decide.Command{Actor: operator, Metadata: decide.Metadata{Fingerprint: hex.EncodeToString(sum[:])}}
	c.Type, c.Payload = s.payload(verb, &c)
	for len(s.words) > 0 {
		switch s.words[0] {
		case "by": // by BROKER: on behalf of another broker than the customer's
			s.word()
			c.Actor = decide.Actor{Sub: "trader", Broker: s.word()}
		case "key": // key KEY: with an Idempotency-Key
			s.word()
			c.Metadata.Key = s.word()
		case "person": // person NAME: another operator
			s.word()
			c.Actor.Sub = s.word()
		case "for": // for CUSTOMER: with a token for one account
			s.word()
			c.Actor.Customer = s.word()
		default:
			return c
		}
	}
	return c
}

func (s *scenario) payload(verb string, c *decide.Command) (string, any) {
	switch verb {
	case "list":
		return CommandListInstrument, s.listInstrument()
	case "change":
		return CommandChangeInstrument, s.changeInstrument()
	case "delist":
		return CommandDelistInstrument, &DelistInstrument{Symbol: s.word()}
	case "index":
		return CommandSetIndexPrice, &SetIndexPrice{Symbol: s.word(), Price: s.decimal(s.word())}
	case "customer":
		payload := &RegisterCustomer{CustomerCode: s.word(), Broker: "alpha"}
		if s.accept("of") {
			payload.Broker = s.word()
		}
		return CommandRegisterCustomer, payload
	case "deposit", "withdraw":
		return s.transferPayload(verb)
	case "insure":
		payload := &DepositInsurance{Amount: s.money(s.word())}
		if s.accept("as") {
			payload.ReferenceID = s.word()
		}
		return CommandDepositInsurance, payload
	case "complete":
		return CommandCompleteWithdrawal, &CompleteWithdrawal{Code: s.labels[s.word()]}
	case "cancel-withdrawal":
		return CommandCancelWithdrawal, &CancelWithdrawal{Code: s.labels[s.word()]}
	case "fees":
		payload := &SetFeeProfile{CustomerCode: s.word(), Symbol: s.word(), MakerFee: s.decimal(s.word()), TakerFee: s.decimal(s.word()), Operator: true}
		if len(s.words) > 0 { // by BROKER
			payload.Operator = false
		}
		return CommandSetFeeProfile, payload
	case "margins":
		payload := &SetMarginProfile{CustomerCode: s.word()}
		if s.accept("leverage") {
			payload.Leverage = s.number(s.word())
		} else {
			payload.InitialMargin, payload.MaintenanceMargin = s.decimal(s.word()), s.decimal(s.word())
		}
		return CommandSetMarginProfile, payload
	case "leverage": // leverage CODE SYMBOL N|none
		payload := &SetLeverage{CustomerCode: s.word(), Symbol: s.word()}
		c.Actor = trader(s.broker(payload.CustomerCode))
		if !s.accept("none") {
			payload.Leverage = s.number(s.word())
		}
		return CommandSetLeverage, payload
	case "amend":
		return CommandAmendOrder, s.amendPayload(c)
	case "cancel":
		s.label = s.word()
		o := s.orders[s.labels[s.label]]
		c.Actor = trader(o.Broker)
		return CommandCancelOrder, &CancelOrder{CustomerCode: o.CustomerCode, OrderCode: o.Code}
	case "cancel-by-reference":
		payload := &CancelOrder{CustomerCode: s.word(), ReferenceID: s.word()}
		c.Actor = trader(s.broker(payload.CustomerCode))
		return CommandCancelOrder, payload
	case "cancel-all":
		payload := &CancelAll{CustomerCode: s.word()}
		c.Actor = trader(s.broker(payload.CustomerCode))
		if len(s.words) > 0 && strings.HasSuffix(s.words[0], "_PERP") {
			payload.Symbol = s.word()
		}
		return CommandCancelAll, payload
	case "cancel-all-after":
		payload := &SetCancelAllAfter{CustomerCode: s.word(), TimeoutSeconds: s.number(s.word())}
		c.Actor = trader(s.broker(payload.CustomerCode))
		return CommandSetCancelAllAfter, payload
	case "put-back":
		return decide.CommandPutBackDue, &decide.PutBackDue{Entry: s.word() + "/" + s.labels[s.word()].String()}
	case "policy":
		return decide.CommandSetPolicy, s.policyPayload()
	case "confirm":
		return decide.CommandConfirmProposal, &decide.ConfirmProposal{ID: s.labels[s.word()]}
	case "reject":
		return decide.CommandRejectProposal, &decide.RejectProposal{ID: s.labels[s.word()], Reason: s.reason()}
	case "retract":
		return decide.CommandWithdrawProposal, &decide.WithdrawProposal{ID: s.labels[s.word()], Reason: s.reason()}
	case "import":
		return CommandImportOpening, s.importPayload()
	case "rules":
		return decide.CommandActivateRules, &decide.ActivateRules{Rules: s.number(s.word())}
	}
	c.Actor = trader(s.broker(verb))
	return CommandPlaceOrder, s.placePayload(verb)
}

func trader(broker string) decide.Actor { return decide.Actor{Sub: "trader", Broker: broker} }

func (s *scenario) broker(customer string) string {
	broker, _ := s.state.CustomerBroker(customer)
	return broker
}

func (s *scenario) transferPayload(verb string) (string, any) {
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

// placePayload: CUSTOMER buys|sells AMOUNT [USDC of] SYMBOL at PRICE|market [GTC|IOC|FOK|GTD +SPAN] [post-only]
// [reduce-only] [leverage N] [as REFERENCE]
func (s *scenario) placePayload(customer string) *PlaceOrder {
	payload := &PlaceOrder{CustomerCode: customer}
	switch s.word() {
	case "buys":
		payload.Action = order.Buy
	case "sells":
		payload.Action = order.Sell
	default:
		s.t.Fatalf("a customer buys or sells")
	}
	amount := s.word()
	if s.accept("USDC") {
		payload.CashAmount = s.money(amount)
		s.accept("of")
	} else {
		payload.Amount = s.decimal(amount)
	}
	payload.Symbol = s.word()
	payload.Type = order.Market
	if !s.accept("at") {
		s.t.Fatalf("at what price?")
	}
	if price := s.word(); price != "market" {
		payload.Type, payload.LimitPrice = order.Limit, s.decimal(price)
	}
	for len(s.words) > 0 {
		switch word := s.words[0]; word {
		case "GTC", "IOC", "FOK", "GTD":
			s.word()
			payload.TimeInForce = order.TimeInForce(word)
			if word == "GTD" {
				payload.ExpireTime = s.now + s.span(s.word())
			}
		case "post-only":
			s.word()
			payload.PostOnly = true
		case "reduce-only":
			s.word()
			payload.ReduceOnly = true
		case "leverage":
			s.word()
			payload.Leverage = s.number(s.word())
		case "as":
			s.word()
			payload.ReferenceID = s.word()
			if payload.ReferenceID == "code-of" {
				payload.ReferenceID = s.labels[s.word()].String()
			}
		case "stop", "profit":
			s.conditional(payload)
		default:
			return payload
		}
	}
	return payload
}

// conditional: stop PRICE, profit PRICE, or both
func (s *scenario) conditional(payload *PlaceOrder) {
	limited := payload.Type == order.Limit
	stop, profit := fixed.Decimal{}, fixed.Decimal{}
	if s.accept("stop") {
		stop = s.decimal(s.word())
	}
	if s.accept("profit") {
		profit = s.decimal(s.word())
	}
	switch {
	case !stop.IsZero() && !profit.IsZero():
		payload.Type, payload.StopLossPrice, payload.TakeProfitPrice = order.TakeProfitStopLoss, stop, profit
	case !stop.IsZero() && limited:
		payload.Type, payload.TriggerPrice = order.StopLossLimit, stop
	case !stop.IsZero():
		payload.Type, payload.TriggerPrice = order.StopLoss, stop
	case limited:
		payload.Type, payload.TriggerPrice = order.TakeProfitLimit, profit
	default:
		payload.Type, payload.TriggerPrice = order.TakeProfit, profit
	}
}

func (s *scenario) amendPayload(c *decide.Command) *AmendOrder {
	s.label = s.word()
	o := s.orders[s.labels[s.label]]
	c.Actor = trader(o.Broker)
	payload := &AmendOrder{CustomerCode: o.CustomerCode, OrderCode: s.labels[s.label]}
	for len(s.words) > 0 {
		switch s.words[0] {
		case "price":
			s.word()
			payload.LimitPrice = some(s.decimal(s.word()))
		case "amount":
			s.word()
			payload.Amount = some(s.decimal(s.word()))
		case "trigger":
			s.word()
			payload.TriggerPrice = some(s.decimal(s.word()))
		case "stop":
			s.word()
			payload.StopLossPrice = some(s.decimal(s.word()))
		case "profit":
			s.word()
			payload.TakeProfitPrice = some(s.decimal(s.word()))
		case "expires":
			s.word()
			payload.ExpireTime = some(s.now + s.span(s.word()))
		default:
			return payload
		}
	}
	return payload
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
	i = change.ApplyTo(i)
	if change.MaxLeverage == nil {
		i.MaxLeverage = min(i.MaxLeverage, i.PermittedLeverage())
	}
	return &ListInstrument{Instrument: i}
}

func (s *scenario) changeInstrument() *ChangeInstrument {
	symbol := s.word()
	payload := s.changes()
	payload.Symbol = symbol
	return payload
}

// changes reads pairs of a parameter and its value.
func (s *scenario) changes() *ChangeInstrument {
	payload := &ChangeInstrument{}
	s.named = make(map[string]string)
	for len(s.words) > 0 {
		name, value := s.word(), s.word()
		s.named[name] = value
		switch name {
		case "status":
			payload.Status = some(market.Status(value))
		case "min":
			payload.MinAmount = some(s.decimal(value))
		case "max":
			payload.MaxAmount = some(s.decimal(value))
		case "initial":
			payload.InitMarginReq = some(s.decimal(value))
		case "maintenance":
			payload.MaintMarginReq = some(s.decimal(value))
		case "leverage":
			payload.MaxLeverage = some(s.number(value))
		case "band":
			payload.PriceBand = some(s.decimal(value))
		case "limit-band":
			payload.LimitBand = some(s.decimal(value))
		case "maker":
			payload.MakerFee = some(s.decimal(value))
		case "taker":
			payload.TakerFee = some(s.decimal(value))
		case "tier": // FROM/INITIAL/MAINTENANCE
			part := strings.Split(value, "/")
			payload.Tiers = append(payload.Tiers, market.Tier{NotionalFrom: s.money(part[0]), InitMarginReq: s.decimal(part[1]), MaintMarginReq: s.decimal(part[2])})
		case "stale":
			payload.IndexStaleSeconds = some(s.number(value))
		case "interval":
			payload.FundingIntervalSeconds = some(s.number(value))
		case "tick", "step", "size":
		default:
			s.t.Fatalf("what is %q of an instrument?", name)
		}
	}
	return payload
}
