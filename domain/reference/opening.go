package reference

import (
	"slices"
	"strconv"
	"strings"
)

// openingShape is the data of opening.imported.
type openingShape struct {
	SHA256       string         `json:"sha256"`
	Balances     int            `json:"balances"`
	BalanceTotal dec            `json:"balance_total"`
	Positions    int            `json:"positions"`
	ImportedBy   string         `json:"imported_by"`
	Created      moment         `json:"created"`
	Postings     []postingShape `json:"postings"`
}

// openedShape is the data of position.opened.
type openedShape struct {
	CustomerCode string      `json:"customer_code"`
	Symbol       string      `json:"symbol"`
	Amount       dec         `json:"amount"`
	EntryPrice   dec         `json:"entry_price"`
	Cost         dec         `json:"cost"`
	Lot          int         `json:"lot"`
	Line         int         `json:"line"`
	Positions    []heldShape `json:"positions"`
}

// opening sums up the lines of an import that were audited so far.
type opening struct {
	openingShape
	balances, positions, line int
	total                     int64
	costs                     map[string]int64 // by symbol
	moved                     map[string]int64 // to the clearing account by the first event, by symbol
	accounts                  []*account       // with positions
}

// openingImported checks the first event of an import. Its postings are compared with the costs of the positions at the end.
func (a *Auditor) openingImported(n int, e *openingShape) {
	r := a.r
	must(a.rules >= 5 && n == 0 && r.Outcome == "accepted", "an import is event %d of a record under rules %d", n, a.rules)
	must(!a.files[e.SHA256] && len(e.SHA256) == 64, "the file %s is imported again", e.SHA256)
	must(e.Created == r.Time, "an import is made at %d", e.Created)
	a.files[e.SHA256] = true
	a.Seen.Opened++
	r.opening = &opening{openingShape: *e, costs: make(map[string]int64), moved: make(map[string]int64)}
	var want []movement
	for _, p := range e.Postings {
		if p.Account == "clearing" {
			r.opening.moved[p.Symbol] += p.Amount.v
			want = append(want, movement{nil, "clearing", "transfer", p.Amount.v}, movement{nil, "external", "transfer", -p.Amount.v})
		}
	}
	a.post(e.Postings, want)
}

// opens notes that a line of the file of the record brings something, for the only time.
func (a *Auditor) opens(what string, line int) {
	o := a.r.opening
	must(!a.lots[what], "%s is brought again", what)
	a.lots[what] = true
	must(line > o.line, "line %d follows line %d", line, o.line)
	o.line = line
}

// openedBalance notes that a balance was paid in, if the record is an import.
func (a *Auditor) openedBalance(c *account, amount int64, reference string) {
	o := a.r.opening
	if o == nil {
		return
	}
	prefix, number, _ := strings.Cut(strings.TrimPrefix(reference, "opening:"), ":")
	line, err := strconv.Atoi(number)
	must(err == nil && prefix == strconv.FormatInt(a.sequence, 10), "%s is no line of record %d", reference, a.sequence)
	a.opens("balance "+c.code, line)
	o.balances++
	o.total += amount
}

// positionOpened checks and applies a position of a file.
func (a *Auditor) positionOpened(e *openedShape) {
	o, c, i := a.r.opening, a.customer(e.CustomerCode), a.instrument(e.Symbol)
	must(o != nil, "a position of %s without its file", c.code)
	must(i.Status != "withdrawn" && i.mark > 0 && !i.stale, "a position is opened on %s, whose margin can't be told", i.Symbol)
	must(e.Lot >= 1 && e.Lot <= 62 && !c.failing.there, "lot %d of %s", e.Lot, c.code)
	a.settled(c, i)
	a.opens("lot "+strconv.Itoa(e.Lot)+" of "+c.code+" on "+i.Symbol, e.Line)
	h, steps := c.on(i), i.steps(e.Amount)
	must(steps != 0 && (h.size == 0 || h.size > 0 == (steps > 0)), "%s holds %d and opens %d", c.code, h.size, steps)
	cost := even(times(rat(e.Amount.v, one), rat(e.EntryPrice.v, 1), rat(i.ContractSize.v, one)))
	must(e.Cost.v == cost, "%s opens %s at %s for %s, not %s", c.code, text(e.Amount.v), text(e.EntryPrice.v), text(cost), text(e.Cost.v))
	h.size, h.cost = h.size+steps, h.cost+cost
	must(len(e.Positions) == 1 && e.Positions[0].CustomerCode == c.code && e.Positions[0].Symbol == i.Symbol &&
		i.steps(e.Positions[0].Amount) == h.size && e.Positions[0].Cost.v == h.cost, "%s holds %d for %s", c.code, h.size, text(h.cost))
	o.positions++
	o.costs[i.Symbol] += cost
	if !c.isFund && !slices.Contains(o.accounts, c) {
		o.accounts = append(o.accounts, c)
	}
	a.touch(c)
}

// finishOpening checks the sums of an import, and the maintenance margins of all accounts with an imported position.
func (a *Auditor) finishOpening() {
	o := a.r.opening
	if o == nil {
		return
	}
	must(o.balances == o.Balances && o.total == o.BalanceTotal.v && o.positions == o.Positions, "an import of %d balances of %s and %d positions has %d of %s and %d",
		o.Balances, text(o.BalanceTotal.v), o.Positions, o.balances, text(o.total), o.positions)
	for symbol, moved := range o.moved {
		must(moved == -o.costs[symbol] && moved != 0, "%s are moved to the clearing account for %s, whose costs are %s", text(moved), symbol, text(o.costs[symbol]))
	}
	for symbol, cost := range o.costs {
		must(cost == -o.moved[symbol], "the costs on %s are %s, and %s are moved to the clearing account", symbol, text(cost), text(o.moved[symbol]))
	}
	for _, c := range o.accounts {
		equity, maintenance := a.health(c)
		must(equity >= maintenance, "%s has an equity of %s after an import, and needs %s", c.code, text(equity), text(maintenance))
	}
}
