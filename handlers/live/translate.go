package live

import (
	"strconv"

	"github.com/perpetua-exchange/perpetua/domain/ledger"
	"github.com/perpetua-exchange/perpetua/domain/trading"
	"github.com/perpetua-exchange/perpetua/handlers/wire"
	"github.com/perpetua-exchange/perpetua/streams/record"
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
func translate(e record.Entry, want func(*channel) bool) []draft {
	var out []draft
	at, ordinal := e.Stamp(), 0
	add := func(c *channel, symbol, broker, customer string, value any) {
		out = append(out, draft{c, symbol, broker, customer, value})
	}
	var triggered trading.Triggered
	for _, event := range e.Record.Events {
		if after := triggered.Order(event, at.Time); after != nil && want(orders) {
			add(orders, "", after.Broker, after.CustomerCode, orderUpdate(after, at.Sequence))
		}
		if trade, ok := event.(*trading.TradeExecuted); ok {
			if want(marketTrades) {
				public := trade.Public(at, ordinal)
				add(marketTrades, trade.Symbol, "", "", wire.NewMarketTrade(&public).Message(marketTrades.topic(trade.Symbol)))
			}
			if want(trades) {
				taker, maker := trade.Sides(at, ordinal)
				for _, side := range [...]*trading.CustomerTrade{&taker, &maker} {
					add(trades, "", side.Broker, side.CustomerCode, wire.NewTrade(side).Message(trades.name))
				}
			}
			if want(liquidations) && kindOf(trade) != takenByAny {
				add(liquidations, "", "", "", newLiquidation(trade, at))
			}
			ordinal++
		}
		if want(balanceChanges) {
			ledger.Rows(at, event, func(r *ledger.Row) {
				add(balanceChanges, "", r.Broker, r.CustomerCode, wire.NewTransaction(r).Message(balanceChanges.name))
			})
		}
	}
	return out
}

// positions returns where in the log each of the drafts of one record stands. A reader of one channel that resumes it
// after such a position misses nothing and gets nothing twice; of another channel the position says nothing. The last
// message of the record on a channel stands at the record itself ("trading/0@123"), an earlier one, the n-th, at a part
// of it ("trading/0@123.n").
func positions(at record.LogPosition, drafts []draft) []draftPosition {
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
	out := make([]draftPosition, len(drafts))
	for i, d := range drafts {
		g := group{d.channel, d.symbol}
		seen[g]++
		if out[i] = (draftPosition{whole, seen[g]}); seen[g] < total[g] {
			out[i].text += "." + strconv.Itoa(seen[g])
		}
	}
	return out
}

// draftPosition is where a draft stands in the log.
type draftPosition struct {
	text string
	nth  int // of the record's messages on its topic, from 1 on
}
