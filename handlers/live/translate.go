package live

import (
	"strconv"

	"github.com/perpetua-exchange/perpetua/domain/ledger"
	"github.com/perpetua-exchange/perpetua/domain/trading"
	"github.com/perpetua-exchange/perpetua/handlers/wire"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// draft is a message before encoding, with its address.
type draft struct {
	channel  *channel
	symbol   string // public channels only
	broker   string // private channels only, like customer
	customer string
	value    any
}

// translate returns the messages of a record on the wanted channels, in the order of the events. It does not include
// order books.
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

// positions returns the log position of each draft of a record. A client that resumes the same channel from such a
// position misses nothing and receives nothing twice; positions do not apply to other channels. The last message of
// the record on a channel has the record's position ("trading/0@123"), and an earlier one, the n-th, has a partial
// position ("trading/0@123.n").
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

// draftPosition is the log position of a draft.
type draftPosition struct {
	text string
	nth  int // number among the record's messages on the topic, from 1
}
