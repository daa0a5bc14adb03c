package ledger

import (
	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/ledger"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/domain/trading"
	"github.com/perpetua-exchange/perpetua/projections"
	c "github.com/perpetua-exchange/perpetua/projections/column"
)

// Transaction is a row of a customer's transactions.
type Transaction = ledger.Row

// Balance is the balance of an account in a currency. Account is "" for a customer's account. CustomerCode and Broker
// are "" for an account of the venue.
type Balance struct {
	Account      ledger.Account
	CustomerCode string
	Broker       string
	Currency     string
	Balance      fixed.Money
	Updated      scalar.Time
	Sequence     int64
}

// Position is a customer's position. The amount of a closed position is 0.
type Position struct {
	trading.PositionHeld
	Broker   string
	Updated  scalar.Time
	Sequence int64
}

// venuePosting is a posting on one of the venue's own accounts.
type venuePosting struct {
	ledger.Posting
	Time scalar.Time
}

type (
	transactionRow = projections.Row[Transaction] // the key is that of the first appearance
	venueRow       = projections.Row[venuePosting]
	balanceRow     = projections.Row[Balance]
	positionRow    = projections.Row[Position]
)

var transactions = &projections.Table[Transaction]{
	Name: "transactions", Journal: "trading", Keys: []string{"sequence", "ordinal"}, Index: "reference_id IS NOT NULL",
	Columns: []c.Column[transactionRow]{
		c.Int("sequence", func(r *transactionRow) *int64 { return &r.Key.Sequence }).Fixed(),
		c.Small("ordinal", func(r *transactionRow) *int64 { return &r.Key.Ordinal }).Fixed(),
		c.ID("code", func(r *transactionRow) *scalar.ID { return &r.Value.Code }).Key(),
		c.Text("customer_code", func(r *transactionRow) *string { return &r.Value.CustomerCode }).Fixed(),
		c.Text("broker", func(r *transactionRow) *string { return &r.Value.Broker }).Fixed(),
		c.Text("type", func(r *transactionRow) *ledger.Type { return &r.Value.Type }).Fixed(),
		c.Text("currency", func(r *transactionRow) *string { return &r.Value.Currency }).Fixed(),
		c.Money("amount", func(r *transactionRow) *fixed.Money { return &r.Value.Amount }),
		c.Text("status", func(r *transactionRow) *ledger.Status { return &r.Value.Status }),
		c.MoneyWhere("balance", completed, func(r *transactionRow) *fixed.Money { return &r.Value.Balance }),
		c.NullText("symbol", func(r *transactionRow) *string { return &r.Value.Symbol }).Fixed(),
		c.ID("order_code", func(r *transactionRow) *scalar.ID { return &r.Value.OrderCode }).Fixed(),
		c.NullDecimal("funding_rate", func(r *transactionRow) *fixed.Decimal { return &r.Value.FundingRate }).Fixed(),
		c.NullDecimal("position_amount", func(r *transactionRow) *fixed.Decimal { return &r.Value.PositionAmount }).Fixed(),
		c.NullDecimal("mark_price", func(r *transactionRow) *fixed.Decimal { return &r.Value.MarkPrice }).Fixed(),
		c.NullText("reference_id", func(r *transactionRow) *string { return &r.Value.ReferenceID }).Fixed(),
		c.Time("created", func(r *transactionRow) *scalar.Time { return &r.Value.Created }).Fixed(),
		c.Time("updated", func(r *transactionRow) *scalar.Time { return &r.Value.Updated }),
		c.Int("changed_sequence", func(r *transactionRow) *int64 { return &r.Value.Sequence }),
	},
	Loaded: func(r *transactionRow) error {
		if completed(r) {
			r.Value.BalanceAsOf = r.Value.Updated
		}
		return nil
	},
}

func completed(r *transactionRow) bool { return r.Value.Status == ledger.Completed }

var venuePostings = &projections.Table[venuePosting]{
	Name: "venue_postings", Journal: "trading", Keys: []string{"sequence", "ordinal"},
	Columns: []c.Column[venueRow]{
		c.Int("sequence", func(r *venueRow) *int64 { return &r.Key.Sequence }),
		c.Small("ordinal", func(r *venueRow) *int64 { return &r.Key.Ordinal }),
		c.Text("account", func(r *venueRow) *ledger.Account { return &r.Value.Account }),
		c.Text("type", func(r *venueRow) *ledger.Type { return &r.Value.Type }),
		c.Text("currency", func(r *venueRow) *string { return &r.Value.Currency }),
		c.Money("amount", func(r *venueRow) *fixed.Money { return &r.Value.Amount }),
		c.Money("balance", func(r *venueRow) *fixed.Money { return &r.Value.Balance }),
		c.NullText("symbol", func(r *venueRow) *string { return &r.Value.Symbol }),
		c.ID("order_code", func(r *venueRow) *scalar.ID { return &r.Value.OrderCode }),
		c.Time("time", func(r *venueRow) *scalar.Time { return &r.Value.Time }),
	},
}

var balances = &projections.Table[Balance]{
	Name: "balances", Journal: "trading",
	Columns: []c.Column[balanceRow]{
		c.Text("customer_code", func(r *balanceRow) *string { return &r.Value.CustomerCode }).Key(),
		c.Text("currency", func(r *balanceRow) *string { return &r.Value.Currency }).Key(),
		c.Text("broker", func(r *balanceRow) *string { return &r.Value.Broker }).Fixed(),
		c.Money("balance", func(r *balanceRow) *fixed.Money { return &r.Value.Balance }),
		c.Time("updated", func(r *balanceRow) *scalar.Time { return &r.Value.Updated }),
		c.Int("sequence", func(r *balanceRow) *int64 { return &r.Value.Sequence }),
	},
}

var venueBalances = &projections.Table[Balance]{
	Name: "venue_balances", Journal: "trading",
	Columns: []c.Column[balanceRow]{
		c.Text("account", func(r *balanceRow) *ledger.Account { return &r.Value.Account }).Key(),
		c.Text("currency", func(r *balanceRow) *string { return &r.Value.Currency }).Key(),
		c.Money("balance", func(r *balanceRow) *fixed.Money { return &r.Value.Balance }),
		c.Time("updated", func(r *balanceRow) *scalar.Time { return &r.Value.Updated }),
		c.Int("sequence", func(r *balanceRow) *int64 { return &r.Value.Sequence }),
	},
}

var positions = &projections.Table[Position]{
	Name: "positions", Journal: "trading",
	Columns: []c.Column[positionRow]{
		c.Text("customer_code", func(r *positionRow) *string { return &r.Value.CustomerCode }).Key(),
		c.Text("symbol", func(r *positionRow) *string { return &r.Value.Symbol }).Key(),
		c.Text("broker", func(r *positionRow) *string { return &r.Value.Broker }).Fixed(),
		c.Decimal("amount", func(r *positionRow) *fixed.Decimal { return &r.Value.Amount }),
		c.Money("cost", func(r *positionRow) *fixed.Money { return &r.Value.Cost }),
		c.NullDecimal("entry_price", func(r *positionRow) *fixed.Decimal { return &r.Value.EntryPrice }),
		c.Time("updated", func(r *positionRow) *scalar.Time { return &r.Value.Updated }),
		c.Int("sequence", func(r *positionRow) *int64 { return &r.Value.Sequence }),
	},
}

// The earlier balances of customers, and their earlier positions.
var (
	balanceHistory  = projections.NewHistory(balances, "balance_history")
	positionHistory = projections.NewHistory(positions, "position_history")
)
