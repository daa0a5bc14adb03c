package ledger

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/ledger"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/domain/trading"
	"github.com/perpetua-exchange/perpetua/projections"
	c "github.com/perpetua-exchange/perpetua/projections/column"
)

// Filter narrows a list. Empty fields narrow nothing.
type Filter struct {
	Broker       string // confines the list to what the caller may see; an operator has none
	CustomerCode string
	Symbol       string
	OrderCode    scalar.ID
	Currency     string
	Types        []ledger.Type
	Statuses     []ledger.Status
	projections.Span
}

// Transactions returns a page of customers' transactions. A withdrawal keeps the place where it was requested.
func Transactions(ctx context.Context, db projections.DB, f Filter, p projections.Page) (projections.Paged[Transaction], error) {
	l := transactions(f.Broker, f.CustomerCode)
	l.Where.AndText("symbol", f.Symbol)
	if !f.OrderCode.IsZero() {
		// What an order moved lies between the record that made it and the one that changed it last.
		l.Where.And("order_code = ?", c.UUID(f.OrderCode))
		l.Where.And("sequence >= (SELECT o.created_sequence FROM orders o WHERE o.code = ?)", c.UUID(f.OrderCode))
		l.Where.And("sequence <= (SELECT o.sequence FROM orders o WHERE o.code = ?)", c.UUID(f.OrderCode))
	}
	l.Where.AndText("currency", f.Currency)
	l.Where.AndAnyOf("type", texts(f.Types))
	if len(f.Types) > 0 && !slices.ContainsFunc(f.Types, func(t ledger.Type) bool { return t != ledger.Deposit && t != ledger.Withdrawal }) {
		l.Where.And("reference_id IS NOT NULL") // there are few, and they have an index of their own
	}
	l.Where.AndAnyOf("status", texts(f.Statuses))
	f.In(&l.Where, "trading", "sequence")
	return l.Page(ctx, db, p)
}

// Transfer returns the deposit or withdrawal with the code.
func Transfer(ctx context.Context, db projections.DB, broker string, code scalar.ID) (t Transaction, found bool, asOf int64, err error) {
	l := transactions(broker, "")
	l.Where.And("reference_id IS NOT NULL")
	l.Where.And("code = ?", c.UUID(code))
	return l.One(ctx, db)
}

// ByReference returns a customer's deposit or withdrawal with the reference_id.
func ByReference(ctx context.Context, db projections.DB, customer string, kind ledger.Type, reference string) (t Transaction, found bool, asOf int64, err error) {
	l := transactions("", customer)
	l.Where.And("type = ?", string(kind))
	l.Where.And("reference_id = ?", reference)
	return l.One(ctx, db)
}

func transactions(broker, customer string) projections.List[Transaction] {
	l := projections.List[Transaction]{Journal: "trading", From: "transactions", Keys: []string{"sequence", "ordinal"},
		Columns: `code, customer_code, broker, type, currency, amount::text, status, balance::text, symbol, order_code,
			reference_id, created, updated, changed_sequence`, Scan: scan}
	l.Where.AndText("broker", broker)
	l.Where.AndText("customer_code", customer)
	return l
}

func scan(row pgx.CollectableRow, t *Transaction, key ...any) error {
	err := row.Scan(append([]any{c.IntoID(&t.Code), &t.CustomerCode, &t.Broker, c.IntoText(&t.Type), &t.Currency,
		c.IntoMoney(&t.Amount), c.IntoText(&t.Status), c.IntoMoney(&t.Balance), c.IntoText(&t.Symbol), c.IntoID(&t.OrderCode),
		c.IntoText(&t.ReferenceID), c.IntoTime(&t.Created), c.IntoTime(&t.Updated), &t.Sequence}, key...)...)
	if t.Status == ledger.Completed {
		t.BalanceAsOf = t.Updated
	}
	return err
}

func texts[S ~string](values []S) []string {
	out := make([]string, len(values))
	for i, v := range values {
		out[i] = string(v)
	}
	return out
}

// Balance is what an account holds of a currency. Of a customer's account Account is "", of the venue's CustomerCode
// and Broker are.
type Balance struct {
	Account      ledger.Account
	CustomerCode string
	Broker       string
	Currency     string
	Balance      fixed.Money
	Updated      scalar.Time
	Sequence     int64
}

// Balances returns the balances of a broker's customers, or of one of them, by customer and currency. Empty arguments
// narrow nothing.
func Balances(ctx context.Context, db projections.DB, broker, customer string) ([]Balance, int64, error) {
	l := projections.List[Balance]{Journal: "trading", From: "balances", Order: `customer_code COLLATE "C", currency`,
		Columns: "customer_code, broker, currency, balance::text, updated, sequence",
		Scan: func(row pgx.CollectableRow, b *Balance, key ...any) error {
			return row.Scan(append([]any{&b.CustomerCode, &b.Broker, &b.Currency, c.IntoMoney(&b.Balance), c.IntoTime(&b.Updated), &b.Sequence}, key...)...)
		}}
	l.Where.AndText("broker", broker)
	l.Where.AndText("customer_code", customer)
	return l.All(ctx, db)
}

// VenueBalances returns the balances of the venue's own accounts, by account and currency.
func VenueBalances(ctx context.Context, db projections.DB) ([]Balance, int64, error) {
	return projections.List[Balance]{Journal: "trading", From: "venue_balances", Order: `account COLLATE "C", currency`,
		Columns: "account, currency, balance::text, updated, sequence",
		Scan: func(row pgx.CollectableRow, b *Balance, key ...any) error {
			return row.Scan(append([]any{c.IntoText(&b.Account), &b.Currency, c.IntoMoney(&b.Balance), c.IntoTime(&b.Updated), &b.Sequence}, key...)...)
		}}.All(ctx, db)
}

// Position is a customer's position.
type Position struct {
	trading.PositionHeld
	Broker   string
	Updated  scalar.Time
	Sequence int64
}

// Positions returns the open positions of a broker's customers, or of one of them, by customer and symbol. Empty
// arguments narrow nothing.
func Positions(ctx context.Context, db projections.DB, broker, customer, symbol string) ([]Position, int64, error) {
	l := projections.List[Position]{Journal: "trading", From: "positions", Order: `customer_code COLLATE "C", symbol COLLATE "C"`,
		Columns: "customer_code, symbol, broker, amount::text, cost::text, entry_price::text, updated, sequence",
		Scan: func(row pgx.CollectableRow, p *Position, key ...any) error {
			return row.Scan(append([]any{&p.CustomerCode, &p.Symbol, &p.Broker, c.IntoDecimal(&p.Amount), c.IntoMoney(&p.Cost),
				c.IntoDecimal(&p.EntryPrice), c.IntoTime(&p.Updated), &p.Sequence}, key...)...)
		}}
	l.Where.And("amount <> 0")
	l.Where.AndText("broker", broker)
	l.Where.AndText("customer_code", customer)
	l.Where.AndText("symbol", symbol)
	return l.All(ctx, db)
}
