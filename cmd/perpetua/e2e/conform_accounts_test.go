package e2e

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
)

const transactionTypes = "deposit withdrawal transfer trade trade_fee funding settlement liquidation liquidation_fee auto_deleveraging insurance"

func (c *conformance) feeChecks() []check {
	all, text := c.path("/v1/customers/ANNA/fee-profile"), []string{"string"}
	return []check{
		{"maker_fee · Type: string", "", c.typed("maker_fee", text, all)},
		{"maker_fee · Notes: basis points (a value of 2 means 0.02%)", "", func() { // 0.02 % of 0.05 × 65000
			c.equal("maker_fee", c.feesOf("ANNA", bitcoin).text("maker_fee"), "2")
			c.feePaid("offer", "2600", "0.52")
		}},
		{"taker_fee · Type: string", "", c.typed("taker_fee", text, all)},
		{"taker_fee · Notes: basis points", "", func() { // 0.05 % of 0.04 × 65000
			c.equal("taker_fee", c.feesOf("BEN", bitcoin).text("taker_fee"), "5")
			c.feePaid("taken", "2600", "1.3")
		}},
		{"The item is per instrument symbol", "", func() {
			var symbols []string
			for _, item := range all.read() {
				symbols = append(symbols, item.text("symbol"))
			}
			slices.Sort(symbols)
			c.equal("symbols", strings.Join(symbols, " "), strings.Join([]string{bitcoin, polkadot, ether, solana}, " "))
		}},
		{"the name of the symbol field inside it is not among the stated fields", "", c.exactly("symbol maker_fee taker_fee", "", all)},
	}
}

func (c *conformance) marginChecks() []check {
	profile, text := c.path("/v1/customers/ANNA/margin-profile"), []string{"string"}
	return []check{
		{"initial_margin · Type: string", "", c.typed("initial_margin", text, profile)},
		{"initial_margin · Notes: 2 decimals", "", c.form("initial_margin", twoDecimals, profile)},
		{"maintenance_margin · Type: string", "", c.typed("maintenance_margin", text, profile)},
		{"maintenance_margin · Notes: 2 decimals", "", c.form("maintenance_margin", twoDecimals, profile)},
		{"instrument_margins · Type: array", "", c.typed("instrument_margins", []string{"array"}, profile)},
		{"instrument_margins · Notes: one entry per instrument with a non-default initial margin: symbol, leverage, initial_margin (2 decimals)", "", func() {
			c.equal("instrument_margins", profile.read()[0].text("instrument_margins"), c.override(bitcoin, "10", "10.00"))
			c.equal("of GUS", c.one("/v1/customers/GUS/margin-profile").text("instrument_margins"), "[]")
		}},
	}
}

func (c *conformance) customerTradeChecks() []check {
	return []check{
		{"Carries a type field with values trade, liquidation, auto_deleveraging", "", c.tradeTypes},
		{"Other fields of customer trades and of the account summary (which no longer has realised_pnl): not shown",
			"Customer trade: code, order_code, customer_code, symbol, action, price, amount, notional, fee, fee_currency, role (maker, taker), type, reference_id, timestamp", together(
				c.exactly("code order_code customer_code symbol action price amount notional fee fee_currency role type reference_id timestamp sequence ordinal", "", c.perCustomer("customer trades", "/trades")),
				c.exactly("customer_code currency balance total_equity unrealised_pnl used_margin order_margin maintenance_margin available_margin margin_ratio risk_state updated_at", "", c.perCustomer("account summaries", "/account-summary")),
				c.absent("realised_pnl", c.perCustomer("account summaries", "/account-summary")))},
	}
}

func (c *conformance) transactionChecks() []check {
	all := c.perCustomer("transactions", "/transactions?page_size=1000")
	return []check{
		{"Rows of GET /v1/customers/{code}/transactions carry a code", "", together(c.typed("code", []string{"string"}, all), c.form("code", `^[0-9a-f-]{36}$`, all))},
		{"Transaction types include settlement, funding, auto_deleveraging", "", c.instants},
		{"the other allowed types: not shown", "Types: deposit, withdrawal, transfer, trade (closing P&L), trade_fee, funding, settlement, liquidation, liquidation_fee, auto_deleveraging, insurance", func() {
			seen := make(map[string]int)
			for _, row := range all.read() {
				if seen[row.text("type")]++; !slices.Contains(strings.Fields(transactionTypes), row.text("type")) {
					c.t.Errorf("%v", row)
				}
			}
			c.note("types: %v", seen)
			for kind := range strings.FieldsSeq(transactionTypes) {
				c.all("/v1/customers/BEN/transactions?type=" + kind)
			}
		}},
		{"The types funding_payment, realised_pnl and adjustment do not exist", "", c.oldTypes},
		{"Other transaction fields: not shown", "Transaction and balance-changes: code, customer_code, type, currency, amount (signed), status (pending, completed), balance and balance_as_of (completed only), symbol, order_code, timestamp, sequence",
			c.exactly("code customer_code type currency amount status balance balance_as_of symbol order_code timestamp sequence id", "reference_id funding_rate position_amount mark_price", all)},
	}
}

func (c *conformance) balanceChangeChecks() []check {
	told := source{"balance-changes messages", func() []object { return c.on(c.private, "balance-changes") }}
	return []check{
		{"1. Real-time ledger movements, the push counterpart of the transactions route", "", func() {
			n := 0
			for _, row := range c.all("/v1/customers/BEN/transactions?page_size=1000") {
				if row.text("type") == "deposit" {
					continue // from before anybody listened
				}
				id := row.text("id")
				m := c.told(c.private, "balance-changes", "the movement "+id, func(o object) bool { return o.text("id") == id })
				for _, member := range row.members() {
					if member != "type" && m.text(member) != row.text(member) {
						c.t.Errorf("%s: %s in REST, %s told", member, row.text(member), m.text(member))
					}
				}
				if m.text("type") != "update" || m.text("transaction_type") != row.text("type") {
					c.t.Errorf("%v", m)
				}
				n++
			}
			c.note("%d rows of BEN, each told with the same fields", n)
		}},
		{"2. Each message's code equals the code of the matching transactions row, and for trade and trade-fee movements equals the code in the trades channel", "", c.sharedCodes},
		{"3. balance and balance_as_of carry the resulting end balance and are present only on completed events", "", c.pendingBalance},
		{"4. Other message fields: not shown", "balance-changes: the transaction's fields after `channel`, `type:\"update\"`, with the movement type as `transaction_type`", func() {
			c.pendingBalance()
			c.exactly("channel type transaction_type code customer_code currency amount status symbol order_code timestamp sequence id",
				"balance balance_as_of reference_id funding_rate position_amount mark_price", told)()
		}},
	}
}

func (c *conformance) tradesChannelChecks() []check {
	return []check{
		{"Per-account trade channel", "", c.perAccount},
		{"Message fields: not shown", "On the trades channel `type` is `update`, so the trade's own type is `trade_type` there", together(
			c.exactly("channel type trade_type code order_code customer_code symbol action price amount notional fee fee_currency role reference_id timestamp sequence ordinal", "",
				source{"trades messages", func() []object { return c.on(c.private, "trades") }}),
			c.among("trade_type", []string{"trade", "liquidation", "auto_deleveraging"}, source{"trades messages", func() []object { return c.on(c.private, "trades") }}))},
		{"Unsubscribe and keep-alive messages: not shown", "Acks `{\"op\":\"subscribed\",\"channel\":topic}`, `{\"op\":\"unsubscribed\",\"channel\":topic}`, `{\"op\":\"authenticated\"}`, `{\"op\":\"pong\"}`", c.keepAlive},
	}
}

func (c *conformance) feesOf(customer, symbol string) object {
	c.t.Helper()
	for _, item := range c.all("/v1/customers/" + customer + "/fee-profile") {
		if item.text("symbol") == symbol {
			return item
		}
	}
	c.t.Fatalf("%s has no fees for %s", customer, symbol)
	return nil
}

// feePaid wants the first trade of an order to have cost a fee.
func (c *conformance) feePaid(name, notional, fee string) {
	c.t.Helper()
	o := c.orders[name]
	trades := c.all("/v1/customers/" + o.text("customer_code") + "/trades?sort=asc&order_code=" + o.text("code"))
	c.equal("notional", trades[0].text("notional"), notional)
	c.equal("fee", trades[0].text("fee"), fee)
	c.equal("fee_currency", trades[0].text("fee_currency"), "USDC")
}

// tradeTypes looks at both sides of LENA's liquidation and deleveraging, and at a trade.
func (c *conformance) tradeTypes() {
	c.among("type", []string{"trade"}, c.path("/v1/customers/BEN/trades"))()
	c.among("type", []string{"trade", "liquidation", "auto_deleveraging"}, c.path("/v1/customers/LENA/trades"))()
	c.among("type", []string{"trade", "auto_deleveraging"}, c.path("/v1/customers/OTTO/trades"))()
	c.among("type", []string{"trade"}, c.path("/v1/customers/ZOE/trades?symbol="+solana))() // who bought what was liquidated
}

// instants reads what came of eight in the morning, of the end of a minute and of a deleveraging.
func (c *conformance) instants() {
	row := func(customer, kind string) object {
		m := c.told(c.private, "balance-changes", kind+" of "+customer, func(o object) bool { return o.text("customer_code") == customer && o.text("transaction_type") == kind })
		rows := c.all("/v1/customers/" + customer + "/transactions?sort=asc&type=" + kind)
		c.equal(kind+" of "+customer+", code", rows[0].text("code"), m.text("code"))
		return rows[0]
	}
	// The settlement may have come before anybody listened: FAY bought 1 at 3000, and the mark was 3030.
	for customer, amount := range map[string]string{"FAY": "30", "GUS": "-30"} {
		rows := c.all("/v1/customers/" + customer + "/transactions?type=settlement")
		c.equal("settlements of "+customer, rows[0].text("amount"), amount)
		c.like("at", rows[0].text("timestamp"), `T08:00:`)
	}
	paid := row("FAY", "funding")
	c.like("funding of FAY", paid.text("amount"), `^-0\.00\d+$`)
	c.like("funding_rate", paid.text("funding_rate"), `^0\.0000\d+$`)
	c.equal("position_amount", paid.text("position_amount"), "1.00")
	c.like("funding of GUS", row("GUS", "funding").text("amount"), `^0\.00\d+$`)
	c.like("auto_deleveraging of OTTO", row("OTTO", "auto_deleveraging").text("amount"), `^[1-9]`)
	c.like("auto_deleveraging of LENA", row("LENA", "auto_deleveraging").text("amount"), `^-[1-9]`)
}

func (c *conformance) oldTypes() {
	for _, old := range []string{"funding_payment", "realised_pnl", "adjustment"} {
		c.refused("/v1/customers/BEN/transactions?type="+old, "type INVALID_VALUE")
	}
}

// sharedCodes holds codes of movements against those of the rows and of the trades channel.
func (c *conformance) sharedCodes() {
	for _, kind := range []string{"trade", "trade_fee"} {
		rows := c.all("/v1/customers/BEN/transactions?page_size=1000&type=" + kind)
		for _, row := range rows {
			id, code := row.text("id"), row.text("code")
			m := c.told(c.private, "balance-changes", "the movement "+id, func(o object) bool { return o.text("id") == id })
			if m.text("code") != code {
				c.t.Errorf("%s and %s", m.text("code"), code)
			}
			c.told(c.private, "trades", "the trade "+code, func(o object) bool { return o.text("code") == code && o.text("customer_code") == "BEN" })
		}
		c.note("%d of type %s, e.g. %s", len(rows), kind, rows[0].text("code"))
	}
}

// pendingBalance follows a withdrawal: while it is pending there is no balance in its message, once it is completed there is.
func (c *conformance) pendingBalance() {
	c.references++
	w := c.sendAs(201, "operator", http.MethodPost, "/admin/v1/customers/ZOE/withdrawals", fmt.Sprintf(`{"currency":"USDC","amount":"10","reference_id":"withdrawal-%d"}`, c.references))
	done := c.sendAs(200, "operator", http.MethodPost, "/admin/v1/withdrawals/"+w.text("code")+"/complete", "")
	for _, status := range []string{"pending", "completed"} {
		m := c.told(c.private, "balance-changes", "the withdrawal "+status, func(o object) bool { return o.text("code") == w.text("code") && o.text("status") == status })
		if status == "pending" {
			c.equal("pending: kind of balance", m.kind("balance"), "")
			c.equal("pending: kind of balance_as_of", m.kind("balance_as_of"), "")
			continue
		}
		c.equal("completed: balance", m.text("balance"), c.all("/v1/customers/ZOE/account-summary")[0].text("balance"))
		c.equal("completed: balance_as_of", m.text("balance_as_of"), done.text("balance_as_of"))
	}
	for _, m := range c.on(c.private, "balance-changes") {
		if (m.text("status") == "completed") != (m.kind("balance") == "string" && m.kind("balance_as_of") == "string") {
			c.t.Errorf("%v", m)
		}
	}
}

// perAccount says whose trades come to whom.
func (c *conformance) perAccount() {
	for _, customer := range []string{"ANNA", "BEN"} {
		m := c.told(c.private, "trades", "a trade of "+customer, func(o object) bool { return o.text("customer_code") == customer })
		c.note("broker-a: %s %s", customer, m.text("price"))
	}
	c.told(c.anna, "trades", "a trade of ANNA", func(o object) bool { return o.text("customer_code") == "ANNA" })
	c.among("customer_code", []string{"ANNA"}, source{"what ANNA's user is told", func() []object { return c.on(c.anna, "trades") }})()
	c.equal("broker-b", object{"n": c.on(c.other, "trades")}.text("n"), "[]")
}
