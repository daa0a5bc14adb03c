package live

import (
	"strconv"

	"github.com/perpetua-exchange/perpetua/domain/ledger"
	"github.com/perpetua-exchange/perpetua/domain/trading"
	"github.com/perpetua-exchange/perpetua/streams/journal"
)

// draft is a message before it is encoded, with what decides who gets it.
type draft struct {
	channel  *channel
	symbol   string // of a public channel
	broker   string // of a private channel
	customer string
	value    any
}

// translate makes the messages that a record causes on the wanted channels, order books apart, in the order of its
// events.
func translate(e journal.Entry, state *trading.State, want func(*channel) bool) []draft {
	var out []draft
	at := e.Stamp()
	add := func(c *channel, symbol, broker, customer string, value any) {
		out = append(out, draft{c, symbol, broker, customer, value})
	}
	row := func(t *ledger.Transaction) {
		if want(balanceChanges) {
			add(balanceChanges, "", t.Broker, t.CustomerCode, transactionRow(t, at))
		}
	}
	for _, event := range e.Record.Events {
		switch event := event.(type) {
		case trading.OrderEvent:
			if o := event.After(); want(orders) {
				add(orders, "", o.Broker, o.CustomerCode, orderUpdate(o))
			}
		case *trading.TradeExecuted:
			if want(marketTrades) {
				add(marketTrades, event.Symbol, "", "", marketTrade(event, at))
			}
			if want(trades) {
				add(trades, "", event.Taker.Broker, event.Taker.CustomerCode, tradeUpdate(event, false, at.Time))
				add(trades, "", event.Maker.Broker, event.Maker.CustomerCode, tradeUpdate(event, true, at.Time))
			}
		case *trading.DepositCompleted:
			row(&event.Transaction)
			continue
		case *trading.WithdrawalRequested:
			row(&event.Transaction)
		case *trading.WithdrawalCompleted:
			row(&event.Transaction)
			continue
		case *trading.WithdrawalCanceled:
			row(&event.Transaction)
		}
		if posted, ok := event.(ledger.Posted); ok && want(balanceChanges) {
			entries := posted.Postings()
			for i := range entries {
				if p := &entries[i]; p.CustomerCode != "" {
					broker, _ := state.CustomerBroker(p.CustomerCode)
					add(balanceChanges, "", broker, p.CustomerCode, postingRow(p, at))
				}
			}
		}
	}
	return out
}

// positions returns where in the log each of the drafts of one record stands. A reader of one channel that resumes
// after such a position misses nothing and gets nothing twice: the last message of the record on a channel stands at
// the record itself ("trading/0@123"), an earlier one, the n-th, at a part of it ("trading/0@123.n").
func positions(at journal.LogPosition, drafts []draft) []string {
	type group struct {
		channel *channel
		symbol  string
	}
	total := make(map[group]int, 4)
	for _, d := range drafts {
		total[group{d.channel, d.symbol}]++
	}
	whole := at.String()
	seen := make(map[group]int, 4)
	out := make([]string, len(drafts))
	for i, d := range drafts {
		g := group{d.channel, d.symbol}
		seen[g]++
		if out[i] = whole; seen[g] < total[g] {
			out[i] = whole + "." + strconv.Itoa(seen[g])
		}
	}
	return out
}
