package trading

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/ledger"
	"github.com/perpetua-exchange/perpetua/domain/liabilities"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

// AlarmLiabilities is the kind of alarm for a statement of liabilities that contradicts the owner's state. The node that made it
// follows another history, or computes something else.
const AlarmLiabilities = "liabilities_contradicted"

// moneyDecimals is the scale of money.
const moneyDecimals = 8

// statements are the instants of funding about which liabilities are stated.
type statements struct {
	instant  FundingInstant // the last one; only about this one a statement is accepted
	external fixed.Money    // the balances of two accounts at the instant, which no posting of a charge changes
	fees     fixed.Money
	stated   statedLiabilities
}

// FundingInstant is an instant of funding after the record that fixed it for the last instrument.
type FundingInstant struct {
	Sequence int64       // of the record; 0 before the first one
	Time     scalar.Time // the instant
	// Hash is the hash of the record, known once the record after it was applied; zero before that.
	Hash [sha256.Size]byte
}

// statedLiabilities is the last recorded statement.
type statedLiabilities struct {
	sequence int64 // of its record
	position int64
	digest   [sha256.Size]byte
}

// observe notes the hash of the instant's record when the next record is applied.
func (s *statements) observe(at decide.Stamp) {
	if s.instant.Sequence > 0 && at.Sequence == s.instant.Sequence+1 {
		s.instant.Hash = at.Prev
	}
}

// completeInstant makes the record that is being applied the last instant, if it fixed funding and no other instrument is to
// follow at that instant.
func (f *fold) completeInstant() {
	if f.fixing == 0 {
		return
	}
	for _, i := range f.listing {
		if e := i.funding; e != nil && e.Queued() && e.Time <= f.fixing {
			return
		}
	}
	f.instant = FundingInstant{Sequence: f.at.Sequence, Time: f.fixing}
	f.statements.external, f.statements.fees = f.venue[ledger.External], f.venue[ledger.Fees]
}

// FundingInstant returns the last instant of funding that was fixed for all instruments. It is false before the first one.
func (s *State) FundingInstant() (FundingInstant, bool) { return s.instant, s.instant.Sequence > 0 }

// LiabilitiesStated returns the sequence of the position of the last recorded statement, or 0.
func (s *State) LiabilitiesStated() int64 { return s.stated.position }

// StatesLiabilities reports whether the rules in force record liabilities.
func (s *State) StatesLiabilities() bool { return s.core.ActiveRules() >= rulesOfInputs }

// Obligation is a customer's balance, as if every charge that was fixed had been posted. It is negative for a deficit.
type Obligation struct {
	CustomerCode string
	Balance      fixed.Money
}

// Obligations returns what the venue owes each customer after the last record, in the order of registration. totals has the sums
// of all accounts; its tree is left out. Every charge of funding and of settlement that was fixed counts as posted, with the
// customer and with the venue's account.
func (s *State) Obligations() (all []Obligation, totals liabilities.Totals) {
	var funding, settlement fixed.Wide // of all accounts, as credits
	owed := func(a *account) fixed.Money {
		balance := a.balance
		if s.outstanding > 0 {
			for _, h := range a.positions {
				_, funded, settled := h.afterCharges()
				funding, settlement = funding.Add(funded.Wide()), settlement.Add(settled.Wide())
				balance = balance.Add(funded).Add(settled)
			}
		}
		return balance
	}
	var total, deficits fixed.Wide
	all = make([]Obligation, len(s.registered))
	for n, a := range s.registered {
		balance := owed(a)
		if all[n] = (Obligation{a.code, balance}); balance > 0 {
			total = total.Add(balance.Wide())
		} else {
			deficits = deficits.Sub(balance.Wide())
		}
	}
	insurance := owed(s.fund)
	// The last posting of a funding charge moves what rounding left in the account funding to the account rounding.
	var left fixed.Wide
	for _, i := range s.listing {
		for _, x := range i.charges {
			left = left.Add(x.left.Wide())
		}
	}
	v := func(a ledger.Account) fixed.Wide { return s.venue[a].Wide() }
	totals = liabilities.Totals{Asset: currency, Scale: moneyDecimals, Total: amount(total), Deficits: amount(deficits),
		Venue: liabilities.Venue{Insurance: liabilities.Balance(insurance), Fees: liabilities.Balance(s.venue[ledger.Fees]), Funding: balance(v(ledger.Funding).Sub(left)),
			Clearing: balance(v(ledger.Clearing).Sub(settlement)), Rounding: balance(v(ledger.Rounding).Add(left).Sub(funding))},
		NetPaidIn: liabilities.Balance(-s.venue[ledger.External])}
	return all, totals
}

// amount returns a sum of 128 bits that is not negative.
func amount(w fixed.Wide) liabilities.Amount {
	hi, lo := w.Words()
	return liabilities.Amount{Hi: uint64(hi), Lo: lo}
}

// balance returns a balance of the venue. That it can be counted is ensured where charges are fixed (due_booking.go).
func balance(w fixed.Wide) liabilities.Balance {
	b, ok := w.Int64()
	if !ok {
		panic("trading: a balance of the venue can't be counted")
	}
	return liabilities.Balance(b)
}

// RecordLiabilities states the liabilities of the venue after the last instant of funding. Only the venue's nodes give it.
//
// Event: liabilities.recorded. Repeated: the same statement, by another node. Refusals: Forbidden; Conflict
// LIABILITIES_NOT_IN_FORCE, NOT_THE_LAST_INSTANT, LIABILITIES_CONTRADICTED, with an alarm.
type RecordLiabilities struct{ Statement liabilities.Statement }

// CommandRecordLiabilities is the type of the command *RecordLiabilities.
const CommandRecordLiabilities = "liabilities.record"

// CommandType returns the type of the command.
func (*RecordLiabilities) CommandType() string { return CommandRecordLiabilities }

// Reconstruct implements decide.Payload.
func (p *RecordLiabilities) Reconstruct(r *decide.Evidence) error {
	if e, ok := decide.EventOf[*LiabilitiesRecorded](r); ok {
		p.Statement = e.Statement
	}
	return nil
}

// LiabilitiesRecorded states the liabilities of the venue after an instant of funding.
type LiabilitiesRecorded struct{ liabilities.Statement }

// EventType returns "liabilities.recorded".
func (*LiabilitiesRecorded) EventType() string { return "liabilities.recorded" }

// recordLiabilities decides a statement. The check reads no account of a customer. It compares the position, its hash, and the
// balances that no charge changes, and it adds up the totals.
func (r request) recordLiabilities(p *RecordLiabilities) (decide.Decision, error) {
	s := &p.Statement
	switch {
	case r.command.Actor.System == "":
		return decide.Decision{}, decide.Refuse(decide.Forbidden, "FORBIDDEN", "only the nodes of the venue state its liabilities")
	case !r.StatesLiabilities():
		return decide.Decision{}, decide.Refuse(decide.Conflict, "LIABILITIES_NOT_IN_FORCE", "the rules in force do not record liabilities: activate newer ones")
	case s.Position.Sequence == r.stated.position && s.Position.Sequence > 0:
		if digestOf(s) != r.stated.digest {
			return decide.Decision{}, contradicted("another statement about record %d was recorded", s.Position.Sequence)
		}
		return decide.Decision{Repeated: true, Repeat: r.stated.sequence}, nil
	case s.Position.Sequence != r.instant.Sequence || s.Position.Sequence == 0: // before the first instant
		return decide.Decision{}, decide.Refuse(decide.Conflict, "NOT_THE_LAST_INSTANT", "liabilities are stated about the last instant of funding only")
	}
	if err := r.contradiction(r.at, s); err != nil {
		return decide.Decision{}, err
	}
	return accepted(&LiabilitiesRecorded{*s})
}

// contradiction returns a refusal if a statement about the last instant contradicts the state.
func (s *State) contradiction(at decide.Stamp, p *liabilities.Statement) error {
	hash := s.instant.Hash
	if at.Sequence == s.instant.Sequence+1 {
		hash = at.Prev
	}
	switch {
	case p.Position.Hash != hex.EncodeToString(hash[:]):
		return contradicted("record %d has another hash", p.Position.Sequence)
	case p.Timestamp != s.instant.Time:
		return contradicted("record %d is about another instant", p.Position.Sequence)
	case p.Asset != currency || p.Scale != moneyDecimals:
		return contradicted("the asset is %s with %d decimals", currency, moneyDecimals)
	case p.NetPaidIn != liabilities.Balance(-s.statements.external) || p.Venue.Fees != liabilities.Balance(s.statements.fees):
		return contradicted("other balances were paid in and earned in fees up to record %d", p.Position.Sequence)
	}
	if err := p.Check(); err != nil {
		return contradicted("%v", err)
	}
	return nil
}

func contradicted(format string, args ...any) error {
	return &decide.Refusal{Kind: decide.Conflict, Code: "LIABILITIES_CONTRADICTED", Message: fmt.Sprintf(format, args...), Alarm: AlarmLiabilities}
}

// digestOf returns a hash of everything in a statement.
func digestOf(s *liabilities.Statement) [sha256.Size]byte {
	return sha256.Sum256(fmt.Appendf(nil, "%d %d %q %q %d %d %v %v %v %d %x", s.Timestamp, s.Position.Sequence, s.Position.Hash, s.Asset, s.Scale, s.Leaves,
		s.Total, s.Deficits, s.Venue, s.NetPaidIn, s.Root))
}

// liabilitiesRecorded applies the event.
func (f *fold) liabilitiesRecorded(e *LiabilitiesRecorded) {
	f.stated = statedLiabilities{f.at.Sequence, e.Position.Sequence, digestOf(&e.Statement)}
}
