package trading

import (
	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/ledger"
	"github.com/perpetua-exchange/perpetua/domain/opening"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/domain/validation"
)

// ImportOpening imports the balances and positions in a file in one record. A balance is paid in like a deposit. A position is
// entered at its entry price. The costs of positions at different entry prices do not sum to zero, since the other venue has
// realized the difference. A posting moves it between the clearing account and the outside. So the balance of the clearing
// account remains minus the sum of all costs.
//
// Events: opening.imported, then for each line deposit.completed, insurance.deposited (a balance of the fund), or
// position.opened. Repeated: a file with the same SHA256 was imported. Refusals: Conflict OPENINGS_NOT_IN_FORCE; Invalid and every
// code of opening.File.Check; Unacceptable and every code of CheckOpening. The field names the line.
type ImportOpening struct{ opening.File }

// CommandImportOpening is the type of the command *ImportOpening.
const CommandImportOpening = "opening.import"

// CommandType returns the type of the command.
func (*ImportOpening) CommandType() string { return CommandImportOpening }

// Content implements decide.Proposable.
func (p *ImportOpening) Content() any { return &p.File }

// Reconstruct implements decide.Payload.
func (p *ImportOpening) Reconstruct(r *decide.Evidence) error {
	e, ok := decide.EventOf[*OpeningImported](r)
	if !ok {
		return nil
	}
	p.Source, p.SHA256 = e.Source, e.SHA256
	for _, e := range r.Events {
		switch e := e.(type) {
		case *DepositCompleted:
			p.Lines = append(p.Lines, opening.Line{Number: opening.ReferenceLine(e.ReferenceID), CustomerCode: e.CustomerCode, Currency: e.Currency, Amount: e.Amount.Decimal()})
		case *InsuranceDeposited:
			p.Lines = append(p.Lines, opening.Line{Number: opening.ReferenceLine(e.ReferenceID), CustomerCode: FundCode, Currency: e.Currency, Amount: e.Amount.Decimal()})
		case *PositionOpened:
			p.Lines = append(p.Lines, opening.Line{Number: e.Line, CustomerCode: e.CustomerCode, Symbol: e.Symbol, Amount: e.Amount, EntryPrice: e.EntryPrice, Lot: e.Lot})
		}
	}
	return nil
}

// OpeningImported says that the lines of a file took effect. The events after it in the record are those of the lines.
type OpeningImported struct {
	Source string `json:"source"`
	SHA256 string `json:"sha256"` // of the file
	// Balances and Positions are the numbers of lines, and BalanceTotal is the sum of the balances.
	Balances     int         `json:"balances"`
	BalanceTotal fixed.Money `json:"balance_total"`
	Positions    int         `json:"positions"`
	ImportedBy   string      `json:"imported_by"` // the user that gave or proposed the command
	Created      scalar.Time `json:"created"`
	// Entries move minus the sum of the costs of the positions on each instrument from outside to the clearing account.
	Entries []ledger.Posting `json:"postings"`
}

// EventType returns "opening.imported".
func (*OpeningImported) EventType() string { return "opening.imported" }

// Postings implements ledger.Posted.
func (e *OpeningImported) Postings() []ledger.Posting { return e.Entries }

// BrokerOf implements ledger.Posted. The postings name no customer.
func (*OpeningImported) BrokerOf(string) string { return "" }

// PositionOpened says that a line of a file brought a position, or a lot of one.
type PositionOpened struct {
	CustomerCode string        `json:"customer_code"`
	Broker       string        `json:"broker"`
	Symbol       string        `json:"symbol"`
	Amount       fixed.Decimal `json:"amount"` // of the lot, signed
	EntryPrice   fixed.Decimal `json:"entry_price"`
	Cost         fixed.Money   `json:"cost"` // of the lot, signed
	Lot          int           `json:"lot"`
	Line         int           `json:"line"` // of the file that opening.imported names
	// Positions is the position after it.
	Positions []PositionHeld `json:"positions"`
}

// EventType returns "position.opened".
func (*PositionOpened) EventType() string { return "position.opened" }

// PositionsAfter implements PositionEvent.
func (e *PositionOpened) PositionsAfter() []PositionHeld { return e.Positions }

// BrokerOf implements PositionEvent.
func (e *PositionOpened) BrokerOf(string) string { return e.Broker }

// OpeningImport is an import that took effect.
type OpeningImport struct {
	Source, SHA256 string
	Balances       int
	BalanceTotal   fixed.Money
	Positions      int
	ImportedBy     string
	Created        scalar.Time
	Sequence       int64 // of the record
}

// openings are the imports so far, in order.
type openings struct {
	imports []*OpeningImport
	bySHA   map[string]*OpeningImport
}

func (o *openings) add(x *OpeningImport) {
	o.imports = append(o.imports, x)
	o.bySHA[x.SHA256] = x
}

// Openings returns the imports so far, in order.
func (s *State) Openings() []OpeningImport {
	out := make([]OpeningImport, len(s.imports))
	for i, x := range s.imports {
		out[i] = *x
	}
	return out
}

// Opening returns the import of the file with a hash.
func (s *State) Opening(sha256 string) (OpeningImport, bool) {
	if x := s.bySHA[sha256]; x != nil {
		return *x, true
	}
	return OpeningImport{}, false
}

// importOpening decides an import.
func (r request) importOpening(p *ImportOpening) (decide.Decision, error) {
	if x := r.bySHA[p.SHA256]; x != nil {
		return decide.Decision{Repeated: true, Repeat: x.Sequence}, nil
	}
	if r.core.ActiveRules() < rulesOfOpenings { // an older build stops at the events
		return decide.Decision{}, decide.Refuse(decide.Conflict, "OPENINGS_NOT_IN_FORCE", "the rules in force have no imports: activate newer ones")
	}
	var f validation.Errors
	p.Check(&f)
	if err := refuseFirst(f.List); err != nil {
		return decide.Decision{}, err
	}
	b := r.buildOpening(p)
	if len(b.errs.List) > 0 {
		e := &b.errs.List[0]
		return decide.Decision{}, &decide.Refusal{Kind: decide.Unacceptable, Code: e.Code, Field: e.Path.String(), Message: e.Message}
	}
	return accepted(b.events...)
}

// CheckOpening returns the first event that the import of a valid file would record now, or up to validation.MaxErrors errors:
// FOREIGN_JOURNAL, UNKNOWN_CUSTOMER, UNKNOWN_SYMBOL, UNSUPPORTED_CURRENCY, LINE_REPEATED, ALREADY_OPENED, REFERENCE_ID_REUSED, ACCOUNT_IN_LIQUIDATION, CHARGES_OUTSTANDING,
// INSTRUMENT_WITHDRAWN, INDEX_PRICE_MISSING, INDEX_PRICE_STALE, INVALID_AMOUNT_STEP, POSITION_OPPOSITE, INVALID_PRICE, POSITION_ABOVE_MAXIMUM,
// POSITIONS_UNBALANCED, AMOUNT_ABOVE_MAXIMUM, and BELOW_MAINTENANCE_MARGIN.
func (s *State) CheckOpening(at decide.Stamp, by decide.Actor, p *ImportOpening) (*OpeningImported, []validation.FieldError) {
	b := request{s, at, decide.Command{Actor: by, Payload: p}}.buildOpening(p)
	if len(b.errs.List) > 0 {
		return nil, b.errs.List
	}
	return b.header, nil
}

// OpeningsInForce reports whether the rules in force have imports.
func (s *State) OpeningsInForce() bool { return s.core.ActiveRules() >= rulesOfOpenings }

// openingImported applies the event.
func (f *fold) openingImported(e *OpeningImported) {
	f.openings.add(&OpeningImport{e.Source, e.SHA256, e.Balances, e.BalanceTotal, e.Positions, e.ImportedBy, e.Created, f.at.Sequence})
}

// positionOpened applies the event, except for the position.
func (f *fold) positionOpened(e *PositionOpened) {
	f.position(e.CustomerCode, e.Symbol).lots |= 1 << e.Lot
}

// importing reports whether the record that is being applied imports a file: opening.imported is its first event.
func (f *fold) importing() bool {
	n := len(f.imports)
	return n > 0 && f.imports[n-1].Sequence == f.at.Sequence
}
