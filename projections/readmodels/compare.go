package readmodels

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/perpetua-exchange/perpetua/domain/fixed"
	domainidentity "github.com/perpetua-exchange/perpetua/domain/identity"
	domainledger "github.com/perpetua-exchange/perpetua/domain/ledger"
	"github.com/perpetua-exchange/perpetua/domain/market"
	"github.com/perpetua-exchange/perpetua/domain/order"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/domain/trading"
	"github.com/perpetua-exchange/perpetua/projections"
	"github.com/perpetua-exchange/perpetua/projections/customers"
	"github.com/perpetua-exchange/perpetua/projections/identity"
	"github.com/perpetua-exchange/perpetua/projections/instruments"
	"github.com/perpetua-exchange/perpetua/projections/ledger"
	"github.com/perpetua-exchange/perpetua/projections/orders"
)

// ErrMoved reports that the rows and the state are at different positions. Bring both to the same position and try
// again.
var ErrMoved = errors.New("the rows and the state stand at different positions")

// maxDifferences is the largest number of differences reported.
const maxDifferences = 100

// Compare compares the rows with a fold of the trading journal at the sequence, and returns the differences: customers
// and their settings, instruments, prices, live orders in every field, balances, positions and withdrawals. Neither
// rows nor fold may change during the comparison. If the rows are at another position, the error is ErrMoved.
func Compare(ctx context.Context, pool *pgxpool.Pool, s *trading.State, sequence int64) ([]string, error) {
	c := &comparison{ctx: ctx, pool: pool, state: s, sequence: sequence}
	for _, part := range []func() error{c.customers, c.instruments, c.orders, c.balances, c.venue, c.positions, c.withdrawals} {
		if err := part(); err != nil {
			return nil, fmt.Errorf("comparing the read models with the log: %w", err)
		}
	}
	return c.differences, nil
}

// CompareIdentity is Compare for the identity journal: brokers and users.
func CompareIdentity(ctx context.Context, pool *pgxpool.Pool, s *domainidentity.State, sequence int64) ([]string, error) {
	c := &comparison{ctx: ctx, pool: pool, sequence: sequence}
	if err := c.people(s); err != nil {
		return nil, fmt.Errorf("comparing the read models with the log: %w", err)
	}
	return c.differences, nil
}

type comparison struct {
	ctx         context.Context
	pool        *pgxpool.Pool
	state       *trading.State // nil for another journal
	sequence    int64
	differences []string
}

// read checks the result of a query: its rows must be at the state's position.
func read[T any](c *comparison, rows T, asOf int64, err error) (T, error) {
	if err == nil && asOf != c.sequence {
		err = fmt.Errorf("%w: rows at %d, state at %d", ErrMoved, asOf, c.sequence)
	}
	return rows, err
}

func (c *comparison) same(what string, rows, state any) {
	if !reflect.DeepEqual(rows, state) && len(c.differences) < maxDifferences {
		c.differences = append(c.differences, fmt.Sprintf("%s: the rows say %+v, the log %+v", what, rows, state))
	}
}

// number makes decimals of different precision comparable.
func number(d fixed.Decimal) fixed.Decimal { return d.Trim() }

func (c *comparison) customers() error {
	rows, asOf, err := customers.Registry().All(c.ctx, c.pool)
	if rows, err = read(c, rows, asOf, err); err != nil {
		return err
	}
	known := c.state.CustomersOf("")
	c.same("the number of customers", len(rows), len(known))
	for i := range min(len(rows), len(known)) {
		r := rows[i]
		c.same("customer "+r.CustomerCode, trading.Customer{Code: r.CustomerCode, Broker: r.Broker, Name: r.Name, Created: r.Created}, known[i])
	}
	if err := c.fees(known); err != nil {
		return err
	}
	return c.leverages(known)
}

// of is the key of a customer's value for an instrument.
type of struct{ customer, symbol string }

// fees compares the fees in force: the customer's own, or else the instrument's defaults.
func (c *comparison) fees(known []trading.Customer) error {
	profiles, asOf, err := customers.FeeProfiles().All(c.ctx, c.pool)
	if profiles, err = read(c, profiles, asOf, err); err != nil {
		return err
	}
	set := make(map[of][2]fixed.Decimal)
	for _, f := range profiles {
		set[of{f.CustomerCode, f.Symbol}] = [2]fixed.Decimal{number(f.MakerFee), number(f.TakerFee)}
	}
	for _, customer := range known {
		fees, inForce := make(map[string][2]fixed.Decimal), make(map[string][2]fixed.Decimal)
		for _, i := range c.state.Instruments() {
			fees[i.Symbol] = [2]fixed.Decimal{number(i.MakerFee), number(i.TakerFee)}
			if f, ok := set[of{customer.Code, i.Symbol}]; ok {
				fees[i.Symbol] = f
			}
		}
		profile, _ := c.state.FeeProfile(customer.Code)
		for _, f := range profile {
			inForce[f.Symbol] = [2]fixed.Decimal{number(f.MakerFee), number(f.TakerFee)}
		}
		c.same("the fees of "+customer.Code, fees, inForce)
	}
	return nil
}

func (c *comparison) leverages(known []trading.Customer) error {
	overrides, asOf, err := customers.Leverages().All(c.ctx, c.pool)
	if overrides, err = read(c, overrides, asOf, err); err != nil {
		return err
	}
	rows := make(map[of]int)
	for _, l := range overrides {
		rows[of{l.CustomerCode, l.Symbol}] = l.Leverage
	}
	for _, customer := range known {
		for _, i := range c.state.Instruments() {
			c.same("the leverage of "+customer.Code+" on "+i.Symbol, rows[of{customer.Code, i.Symbol}], c.state.Leverage(customer.Code, i.Symbol))
		}
	}
	return nil
}

func (c *comparison) instruments() error {
	rows, asOf, err := instruments.Instruments().All(c.ctx, c.pool)
	if rows, err = read(c, rows, asOf, err); err != nil {
		return err
	}
	rows = slices.DeleteFunc(rows, func(i instruments.Instrument) bool { return i.Status == market.Withdrawn })
	slices.SortFunc(rows, func(a, b instruments.Instrument) int { return cmp.Compare(a.Listed, b.Listed) })
	listed := c.state.Instruments()
	c.same("the number of instruments", len(rows), len(listed))
	for i := range min(len(rows), len(listed)) {
		c.same("instrument "+rows[i].Symbol, []any{rows[i].Instrument, rows[i].Created}, []any{listed[i], c.state.Listed(listed[i].Symbol)})
	}
	prices, asOf, err := instruments.LastPrices().All(c.ctx, c.pool)
	if prices, err = read(c, prices, asOf, err); err != nil {
		return err
	}
	for _, p := range prices {
		index, at := c.state.IndexPrice(p.Symbol)
		c.same("the prices of "+p.Symbol, []any{number(p.Index), p.IndexTime, number(p.Mark), number(p.Last), p.Stale},
			[]any{number(index), at, number(c.state.MarkPrice(p.Symbol)), number(c.state.LastPrice(p.Symbol)), c.state.IndexStale(p.Symbol)})
	}
	return nil
}

// holders returns the codes of all possible holders of orders and positions: the insurance fund and the customers.
func (c *comparison) holders() []string {
	codes := []string{trading.FundCode}
	for _, customer := range c.state.CustomersOf("") {
		codes = append(codes, customer.Code)
	}
	return codes
}

func (c *comparison) orders() error {
	rows, asOf, err := orders.Open(c.ctx, c.pool, orders.Filter{})
	if rows, err = read(c, rows, asOf, err); err != nil {
		return err
	}
	live := make(map[scalar.ID]orders.Order)
	for _, code := range c.holders() {
		c.state.EachOpenOrder(code, func(o *order.Order, sequence int64) {
			live[o.Code] = orders.Order{Order: *o, Sequence: sequence, Sweeping: c.state.Sweeps(o.Code)}
		})
	}
	for _, r := range rows {
		o, ok := live[r.Code]
		if !ok {
			c.same("order "+r.Code.String(), r.Status, "not live")
			continue
		}
		c.same("order "+r.Code.String(), r, o)
		delete(live, r.Code)
	}
	for code, o := range live {
		c.same("order "+code.String(), "not live", o.Status)
	}
	return nil
}

func (c *comparison) balances() error {
	rows, asOf, err := ledger.Balances().All(c.ctx, c.pool)
	if rows, err = read(c, rows, asOf, err); err != nil {
		return err
	}
	held := make(map[string]fixed.Money)
	for _, b := range rows {
		held[b.CustomerCode] = b.Balance
	}
	for _, customer := range c.state.CustomersOf("") {
		balance, _ := c.state.Balance(customer.Code)
		c.same("the balance of "+customer.Code, held[customer.Code], balance)
		delete(held, customer.Code)
	}
	for code, balance := range held {
		c.same("the balance of "+code, balance, "no such customer")
	}
	return nil
}

func (c *comparison) venue() error {
	rows, asOf, err := ledger.VenueBalances().All(c.ctx, c.pool)
	if rows, err = read(c, rows, asOf, err); err != nil {
		return err
	}
	held := make(map[domainledger.Account]fixed.Money)
	for _, b := range rows {
		held[b.Account] = b.Balance
	}
	for _, account := range domainledger.Accounts() {
		c.same("the venue's account "+string(account), held[account], c.state.VenueBalance(account))
	}
	return nil
}

func (c *comparison) positions() error {
	rows, asOf, err := ledger.Positions().All(c.ctx, c.pool)
	if rows, err = read(c, rows, asOf, err); err != nil {
		return err
	}
	type key struct{ customer, symbol string }
	type position struct {
		amount, entry fixed.Decimal
		cost          fixed.Money
	}
	open := make(map[key]position)
	for _, code := range c.holders() {
		for _, p := range c.state.Positions(code) {
			open[key{code, p.Symbol}] = position{p.Amount, p.EntryPrice, p.Cost}
		}
	}
	rows = slices.DeleteFunc(rows, func(p ledger.Position) bool { return p.Amount.IsZero() })
	c.same("the number of positions", len(rows), len(open))
	for _, p := range rows {
		c.same("the position of "+p.CustomerCode+" in "+p.Symbol, position{p.Amount, p.EntryPrice, p.Cost}, open[key{p.CustomerCode, p.Symbol}])
	}
	return nil
}

func (c *comparison) withdrawals() error {
	pending := make(map[string]fixed.Money)
	page := projections.Page{Size: 1000}
	filter := ledger.Filter{Types: []domainledger.Type{domainledger.Withdrawal}}
	for {
		p, err := ledger.Transactions(c.ctx, c.pool, filter, page)
		if p, err = read(c, p, p.AsOf, err); err != nil {
			return err
		}
		for _, r := range p.Values() {
			w, _ := c.state.Withdrawal(r.Code)
			c.same("withdrawal "+r.Code.String(), []any{r.CustomerCode, r.Broker, r.Type, r.Currency, r.Amount, r.Status, r.ReferenceID, r.Created, r.Updated},
				[]any{w.CustomerCode, w.Broker, w.Type, w.Currency, w.Amount, w.Status, w.ReferenceID, w.Created, w.Updated})
			if r.Status == domainledger.Pending {
				pending[r.CustomerCode] -= r.Amount
			}
		}
		if !p.HasNext {
			break
		}
		end, _ := p.End()
		page.After = &end
	}
	for _, customer := range c.state.CustomersOf("") {
		summary, _ := c.state.Summary(customer.Code)
		c.same("the pending withdrawals of "+customer.Code, pending[customer.Code], summary.PendingWithdrawal)
	}
	return nil
}

func (c *comparison) people(s *domainidentity.State) error {
	rows, asOf, err := identity.AllBrokers().All(c.ctx, c.pool)
	if rows, err = read(c, rows, asOf, err); err != nil {
		return err
	}
	brokers := make(map[string]domainidentity.Broker)
	for _, b := range rows {
		brokers[b.Broker.Broker] = b.Broker
	}
	c.same("the number of brokers", len(rows), len(s.Brokers()))
	for _, b := range s.Brokers() {
		c.same("broker "+b.Broker, brokers[b.Broker], *b)
	}
	found, asOf, err := identity.AllUsers().All(c.ctx, c.pool)
	if found, err = read(c, found, asOf, err); err != nil {
		return err
	}
	users := make(map[string]domainidentity.User)
	for _, u := range found {
		users[u.Username] = u.User
	}
	c.same("the number of users", len(found), len(s.Users()))
	for _, u := range s.Users() {
		known := *u
		known.PasswordHash, known.PasswordChanged = nil, 0 // not in any row
		c.same("user "+u.Username, users[u.Username], known)
	}
	return nil
}
