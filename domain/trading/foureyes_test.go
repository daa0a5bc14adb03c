package trading

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/market"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

// effects are the events of the actions of a policy, by action.
var effects = map[string]string{
	"deposit.completed": CommandMakeDeposit, "insurance.deposited": CommandDepositInsurance, "withdrawal.requested": CommandRequestWithdrawal,
	"withdrawal.completed": CommandCompleteWithdrawal, "withdrawal.canceled": CommandCancelWithdrawal, "fee_profile.set": CommandSetFeeProfile,
	"margin_profile.set": CommandSetMarginProfile, "instrument.listed": CommandListInstrument, "instrument.changed": CommandChangeInstrument,
	"instrument.delisted": CommandDelistInstrument, "opening.imported": CommandImportOpening, "four_eyes.set": decide.CommandSetPolicy,
}

// fourEyesRun gives random commands of three operators and checks every record against the policy before it.
type fourEyesRun struct {
	*testJournal
	r       *rapid.T
	policy  decide.Policy
	made    map[scalar.ID]string // the proposers of all proposals
	pending []scalar.ID          // withdrawals
	done    int                  // confirmations
}

// TestNoActionWithoutTwo: no action under a policy takes effect without two persons, whatever three operators do.
func TestNoActionWithoutTwo(t *testing.T) {
	confirmed := 0
	rapid.Check(t, func(r *rapid.T) {
		x := &fourEyesRun{testJournal: newTestJournal(r), r: r, made: make(map[scalar.ID]string)}
		for _, p := range []decide.Payload{&ListInstrument{Instrument: plain("BTCUSDC_PERP")}, &RegisterCustomer{CustomerCode: "ann", Broker: "alpha"}, &MakeDeposit{CustomerCode: "ann", Currency: currency, Amount: 1000 * fixed.Unit}} {
			if _, err := x.do(decide.Command{Actor: operator, Payload: p}); err != nil {
				r.Fatalf("%T: %v", p, err)
			}
		}
		x.follow = x.check
		for range rapid.IntRange(10, 40).Draw(r, "commands") {
			x.now += scalar.Time(rapid.Int64Range(0, int64(20*scalar.Second)).Draw(r, "passes"))
			who := rapid.SampledFrom([]string{"operator", "olga", "eve"}).Draw(r, "who")
			_, _ = x.do(decide.Command{Actor: decide.Actor{Sub: who, Broker: "venue"}, Payload: x.payload(), Metadata: decide.Metadata{Fingerprint: who}})
		}
		confirmed += x.done
		x.checkReplay()
	})
	if confirmed == 0 {
		t.Error("no proposal was confirmed")
	}
}

// check compares the events of a record with the policy before it.
func (x *fourEyesRun) check(c decide.Recorded, events []decide.Event) {
	confirmation, confirmed := decide.EventOf[*decide.ProposalConfirmed](&decide.Evidence{Events: events})
	if confirmed {
		x.done++
		if by, known := x.made[confirmation.ID]; !known || by != confirmation.ProposedBy || by == c.Actor.Sub || confirmation.By != c.Actor.Sub {
			x.t.Fatalf("%s confirms %s of %q", c.Actor.Sub, confirmation.ID, by)
		}
		delete(x.made, confirmation.ID) // it takes effect once
	}
	for _, e := range events {
		action, known := effects[e.EventType()]
		if known && x.needsTwo(action, e) && !confirmed {
			x.t.Fatalf("%s takes effect for %s alone: %+v", action, c.Actor.Sub, e)
		}
		switch e := e.(type) {
		case *decide.ProposalMade:
			x.made[e.ID] = c.Actor.Sub
		case *decide.PolicySet:
			defer func() { x.policy = e.Policy }()
		case *WithdrawalRequested:
			x.pending = append(x.pending, e.Code)
		}
	}
}

// needsTwo reports whether the policy wants two persons for the action with this event.
func (x *fourEyesRun) needsTwo(action string, e decide.Event) bool {
	if action == decide.CommandSetPolicy {
		return len(x.policy.Rules) > 0
	}
	at := slices.IndexFunc(x.policy.Rules, func(r decide.PolicyRule) bool { return r.Action == action })
	if at < 0 {
		return false
	}
	var amount fixed.Decimal
	switch e := e.(type) {
	case *DepositCompleted:
		amount = e.Amount.Decimal()
	case *InsuranceDeposited:
		amount = e.Amount.Decimal()
	case *WithdrawalRequested:
		amount = (-e.Amount).Decimal()
	case *WithdrawalCompleted:
		amount = (-e.Amount).Decimal()
	case *WithdrawalCanceled:
		amount = (-e.Amount).Decimal()
	case *FeeProfileSet:
		amount = e.MakerFee.Neg()
	case *OpeningImported:
		amount = e.BalanceTotal.Decimal()
	}
	least := x.policy.Rules[at].Threshold
	return least == nil || amount.Cmp(*least) >= 0
}

// payload draws a command.
func (x *fourEyesRun) payload() decide.Payload {
	r := x.r
	amount := fixed.Money(rapid.IntRange(1, 9).Draw(r, "amount")) * fixed.Unit
	reference := rapid.SampledFrom([]string{"", "", "a"}).Draw(r, "reference")
	code := scalar.ID{1}
	if len(x.pending) > 0 {
		code = rapid.SampledFrom(x.pending).Draw(r, "withdrawal")
	}
	id := scalar.ID{2}
	if all := x.state.Proposals(); len(all) > 0 {
		id = rapid.SampledFrom(all).Draw(r, "proposal").ID
	}
	status := rapid.SampledFrom([]market.Status{market.Open, market.PostOnly}).Draw(r, "status")
	return rapid.SampledFrom([]decide.Payload{
		&decide.ConfirmProposal{ID: id}, &decide.ConfirmProposal{ID: id}, &decide.ConfirmProposal{ID: id}, &decide.RejectProposal{ID: id}, &decide.WithdrawProposal{ID: id},
		&decide.SetPolicy{Policy: x.randomPolicy()},
		&MakeDeposit{CustomerCode: "ann", Currency: currency, Amount: amount, ReferenceID: reference},
		&RequestWithdrawal{CustomerCode: "ann", Currency: currency, Amount: amount, ReferenceID: reference},
		&DepositInsurance{Amount: amount, ReferenceID: reference},
		&CompleteWithdrawal{Code: code}, &CancelWithdrawal{Code: code},
		&SetFeeProfile{CustomerCode: "ann", Symbol: "BTCUSDC_PERP", MakerFee: fixed.Decimal{Coef: 5 - int64(amount/fixed.Unit)}, TakerFee: fixed.Decimal{Coef: 9}, Operator: true},
		&SetMarginProfile{CustomerCode: "ann", Leverage: int(amount / fixed.Unit)},
		&ChangeInstrument{Symbol: "BTCUSDC_PERP", Status: &status, MakerFee: new(fixed.Decimal)},
		&ListInstrument{Instrument: plain(fmt.Sprintf("N%dUSDC_PERP", amount/fixed.Unit))},
		&DelistInstrument{Symbol: fmt.Sprintf("N%dUSDC_PERP", amount/fixed.Unit)},
	}).Draw(r, "command")
}

func (x *fourEyesRun) randomPolicy() decide.Policy {
	p := decide.Policy{ProposalSeconds: rapid.IntRange(60, 300).Draw(x.r, "open")}
	for _, a := range x.state.Governed().Actions() {
		if !rapid.Bool().Draw(x.r, a.Name) {
			continue
		}
		rule := decide.PolicyRule{Action: a.Name}
		if a.Unit != "" && rapid.Bool().Draw(x.r, "threshold") {
			rule.Threshold = &fixed.Decimal{Coef: rapid.Int64Range(0, 9).Draw(x.r, "least")}
		}
		p.Rules = append(p.Rules, rule)
	}
	return p
}

// plain returns an instrument.
func plain(symbol string) market.Instrument {
	one := fixed.Decimal{Coef: 1}
	return market.Instrument{Symbol: symbol, Underlying: "XX", QuoteCurrency: "USDC", SettlementCurrency: "USDC", PriceTick: one, AmountStep: one, MinAmount: one,
		MaxAmount: fixed.Decimal{Coef: 1000}, ContractSize: one, InitMarginReq: fixed.Decimal{Coef: 10}, MaintMarginReq: fixed.Decimal{Coef: 5}, MaxLeverage: 10,
		FundingIntervalSeconds: 3600, PriceBand: fixed.Decimal{Coef: 5}, LimitBand: fixed.Decimal{Coef: 20}, MakerFee: fixed.Decimal{Coef: 2}, TakerFee: fixed.Decimal{Coef: 5}}
}

// TestContentsOfChanges: a proposed change of an instrument has the members that its recorded input names.
func TestContentsOfChanges(t *testing.T) {
	content := reflect.TypeFor[instrumentContent]()
	var names []string
	for n := 1; n < content.NumField(); n++ {
		name, _, _ := strings.Cut(content.Field(n).Tag.Get("json"), ",")
		names = append(names, name)
	}
	var members []string
	for _, m := range instrumentMembers {
		members = append(members, m.name)
	}
	slices.Sort(names)
	slices.Sort(members)
	if !slices.Equal(names, members) {
		t.Errorf("a content has %v, an input %v", names, members)
	}
}
