package readmodels_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/perpetua-exchange/perpetua/domain/fixed"
)

// tenQuestions returns the SQL of the questions in schemas/README.md, with a customer of the test.
func tenQuestions(t *testing.T) (questions []string) {
	t.Helper()
	page, err := os.ReadFile("../../schemas/README.md")
	must(t, err)
	_, section, found := strings.Cut(string(page), "### Ten questions\n")
	section, _, ended := strings.Cut(section, "\n## ")
	if !found || !ended {
		t.Fatal("no section with the questions")
	}
	for _, block := range strings.Split(section, "```sql\n")[1:] {
		sql, _, _ := strings.Cut(block, "```")
		questions = append(questions, strings.ReplaceAll(sql, "C-1001", "C1"))
	}
	check(t, "number of questions", len(questions), 10)
	return questions
}

func (a *analyzed) questions(t *testing.T) {
	var answers [][]line
	for _, sql := range tenQuestions(t) {
		found := lines(t, a.pool, sql)
		if len(found) == 0 {
			t.Errorf("no rows: %s", sql)
		}
		answers = append(answers, found)
	}
	day := a.days[slices.IndexFunc(a.days, func(p *period) bool { return p.day() == "2026-04-01" })]
	gotPnL, gotFunding := map[string]pnl{}, map[ofSymbol]fixed.Money{}
	for _, l := range answers[0] {
		gotPnL[l["customer_code"]] = pnl{l.money(t, "realized_pnl"), l.money(t, "fees"), l.money(t, "funding"), l.money(t, "insurance")}
	}
	check(t, "profit and loss of 1 April", gotPnL, day.pnl)
	for _, l := range answers[1] {
		gotFunding[ofSymbol{l["customer_code"], l["symbol"]}] = l.money(t, "funding")
	}
	check(t, "funding of 1 April", gotFunding, day.funding)

	var before fixed.Money
	check(t, "days of a balance", len(answers[3]), len(a.days))
	for i, l := range answers[3] {
		check(t, "the balance at the end of "+l["day"], l.money(t, "balance"), a.days[i].balances["C1"])
		check(t, "its change", before+l.money(t, "net_pnl")+l.money(t, "net_transfers"), l.money(t, "balance"))
		before = l.money(t, "balance")
	}
	check(t, "number of the largest positions", len(answers[4]), min(20, len(day.positions)))
	for _, l := range answers[4] {
		want := day.positions[ofSymbol{l["customer_code"], l["symbol"]}]
		check(t, "the position of "+l["customer_code"], standing{l.decimal(t, "amount"), l.decimal(t, "mark_price"), want.cost, l.money(t, "unrealized_pnl")}, want)
	}
	for _, l := range answers[5] {
		at := slices.IndexFunc(a.hours, func(p *period) bool { return p.last == l.number(t, "sequence") })
		if at < 0 {
			t.Fatalf("no hour ends with %s", l["sequence"])
		}
		bid, ask := "", ""
		for _, level := range a.hours[at].books["BTCUSDC_PERP"] {
			switch side, rest, _ := strings.Cut(level, " "); {
			case side == "bid" && bid == "":
				bid, _, _ = strings.Cut(rest, " ")
			case side == "ask" && ask == "":
				ask, _, _ = strings.Cut(rest, " ")
			}
		}
		show := func(d fixed.Decimal) string {
			if d.IsZero() {
				return ""
			}
			return d.String()
		}
		check(t, "the best prices as of "+l["sequence"], show(l.decimal(t, "best_bid"))+"/"+show(l.decimal(t, "best_ask")), bid+"/"+ask)
	}
}
