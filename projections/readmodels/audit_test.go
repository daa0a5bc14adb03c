package readmodels_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/entitlement"
	"github.com/perpetua-exchange/perpetua/domain/fixed"
	domainidentity "github.com/perpetua-exchange/perpetua/domain/identity"
	"github.com/perpetua-exchange/perpetua/domain/ledger"
	domain "github.com/perpetua-exchange/perpetua/domain/onboarding"
	"github.com/perpetua-exchange/perpetua/domain/order"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/domain/trading"
	"github.com/perpetua-exchange/perpetua/projections"
	"github.com/perpetua-exchange/perpetua/projections/projectiontest"
	"github.com/perpetua-exchange/perpetua/projections/readmodels"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// people makes up an identity journal.
func people(seed uint64) []record.Entry {
	v := projectiontest.NewVenue(seed)
	operator, when := decide.Actor{Sub: "operator", Broker: "venue"}, scalar.Time(1_800_000_000_000_000)
	ann := domainidentity.User{Username: "ann", Broker: "alpha", Scopes: []string{"trade", "read"}, IsActive: true,
		PasswordHash: []byte("secret"), Created: when, Updated: when}
	bob := ann
	bob.Username, bob.CustomerCode, bob.RateLimit = "bob", "C1", &domainidentity.RateLimit{PerSecond: 5, Burst: 10}
	return []record.Entry{
		v.Entry(record.TypeGenesis, decide.Engine, decide.Accepted, &record.Genesis{Journal: "identity"}),
		v.Entry(record.TypeTermStarted, decide.Engine, decide.Accepted, &record.TermStarted{Term: 1, Node: "n"}),
		v.Entry("broker.register", operator, decide.Accepted, &domainidentity.BrokerRegistered{Broker: domainidentity.Broker{Broker: "alpha", Name: "Alpha", Created: when}}),
		v.Entry("user.register", operator, decide.Accepted, &domainidentity.UserRegistered{User: ann}),
		v.Entry("user.register", operator, decide.Accepted, &domainidentity.UserRegistered{User: bob}),
	}
}

// everyColumn makes up a trading journal whose rows have a value in every column: beside what a venue does anyway, the user
// of a customer orders for cash, and funding is paid.
func everyColumn() []record.Entry {
	v := projectiontest.NewVenue(30)
	entries := v.Entries(700)
	when := v.Pass(0)
	cash := order.Order{Code: decide.Stamp{Journal: entries[0].Journal, Sequence: 700}.Derive(0), CustomerCode: "C0", Broker: projectiontest.BrokerOf("C0"), Symbol: projectiontest.Symbols()[0], Action: order.Buy,
		Type: order.Market, Status: order.Open, CashAmount: 500_00000000, TimeInForce: order.IOC, ReferenceID: "cash", Created: when, Updated: when}
	paid := trading.FundingPosted{PositionAmount: fixed.Decimal{Coef: 5, Scale: 1}, FundingRate: fixed.Decimal{Coef: 1, Scale: 4},
		DebtPosted: trading.DebtPosted{Code: scalar.ID{31}, CustomerCode: "C0", Broker: cash.Broker, Symbol: cash.Symbol, MarkPrice: fixed.Decimal{Coef: 65000},
			Entries: []ledger.Posting{{Code: scalar.ID{31}, CustomerCode: "C0", Type: ledger.FundingPayment, Currency: "USDC", Amount: -3_00000000, Balance: 7_00000000},
				{Account: ledger.Funding, Type: ledger.FundingPayment, Currency: "USDC", Amount: 3_00000000, Balance: 3_00000000}}}}
	// A state with a value in every column that history has, followed by another one.
	full := cash
	one := fixed.Decimal{Coef: 1}
	full.LimitPrice, full.TriggerPrice, full.StopLossPrice, full.TakeProfitPrice, full.AverageFillPrice = one, one, one, one, one
	full.ExpireTime, full.Triggered, full.Reason, full.Status = when, when, order.Disconnect, order.Canceled
	made := decide.ProposalMade{ID: scalar.ID{41}, Action: "instrument.delist", Command: "instrument.delist", Content: `{"symbol":"BTCUSDC_PERP"}`,
		Objects: []string{"instrument/BTCUSDC_PERP"}, ProposedBy: "operator", Seen: 1, Created: when, Expires: when + scalar.Day}
	rejected := decide.ProposalRejected{ProposalEnd: decide.ProposalEnd{ID: made.ID, Action: made.Action, ProposedBy: "operator", Proposed: 2, By: "olga", Time: when}, Reason: "not now"}
	return append(entries,
		v.Entry("order.place", decide.Actor{Sub: "c", Broker: cash.Broker, Customer: "C0"}, decide.Accepted, &trading.OrderOpened{Order: cash}),
		v.Entry("order.cancel", decide.Actor{Sub: "c", Broker: cash.Broker, Customer: "C0"}, decide.Accepted, &trading.OrderCanceled{Order: full}),
		v.Entry("order.cancel", decide.Actor{Sub: "c", Broker: cash.Broker, Customer: "C0"}, decide.Accepted, &trading.OrderCanceled{Order: full}),
		v.Entry("engine.step", decide.Engine, decide.Accepted, &paid),
		v.Entry(made.Command, decide.Actor{Sub: "operator", Broker: "venue"}, decide.Accepted, &made),
		v.Entry(decide.CommandRejectProposal, decide.Actor{Sub: "olga", Broker: "venue"}, decide.Accepted, &rejected))
}

// filled returns two databases with the rows of the same entries of all journals.
func filled(t *testing.T, entries []record.Entry) (live, made *pgxpool.Pool) {
	t.Helper()
	identity, registrar := people(31), projectiontest.NewRegistrar(t, 36)
	registrar.Play(1500)
	for i, id := range registrar.Webhooks { // some are left in the middle of a rotation
		if w, known := registrar.State.Webhook(id); known && i%2 == 0 {
			registrar.Do(decide.Actor{Sub: "a", Broker: w.Tenant}, &domain.RotateWebhook{ID: id, Overlap: scalar.Day, Key: registrar.SigningKey()})
		}
	}
	operator := decide.Actor{Sub: "operator", Broker: "venue"}
	asked, identified := false, false
	for _, id := range registrar.Triggers { // what operators do to a trigger is refused most of the time
		act := func(action entitlement.Action, more domain.ActOnTrigger) bool {
			more.ID, more.Action, more.Code, more.Reason = id, action, "CODE", registrar.Sealed()
			return registrar.Do(operator, &more) == ""
		}
		asked = asked || act(entitlement.RequestInformation, domain.ActOnTrigger{Questionnaires: registrar.Questionnaires[:1]})
		if !identified {
			act(entitlement.Start, domain.ActOnTrigger{})
			act(entitlement.RequestVideoIdentification, domain.ActOnTrigger{})
			identified = act(entitlement.CompleteVideoIdentification, domain.ActOnTrigger{Outcome: domain.Passed, ExternalReference: registrar.Sealed()})
		}
	}
	for _, pool := range []**pgxpool.Pool{&live, &made} {
		*pool = projectiontest.Database(t)
		apply(t, *pool, "trading", readmodels.Trading(), entries)
		apply(t, *pool, "identity", readmodels.Identity(), identity)
		apply(t, *pool, "onboarding", readmodels.Onboarding(), registrar.Entries)
	}
	return live, made
}

// asAdmin returns a pool on the same database whose user may do everything.
func asAdmin(t *testing.T, pool *pgxpool.Pool) *pgxpool.Pool {
	t.Helper()
	return projectiontest.Open(t, projectiontest.Admin(t, pool.Config().ConnString()))
}

// spoilt is an expression for another value than the column's, by the column's type.
func spoilt(column, kind string) string {
	value := map[string]string{
		"text": "%s || 'x'", "numeric": "%s + 1", "bigint": "%s + 1", "integer": "%s + 1000", "boolean": "NOT %s",
		"timestamp with time zone": "%s + interval '1 microsecond'", "uuid": "md5(%s::text)::uuid",
		"bytea": "sha256(%s)", "_text": "array_append(%s, 'x')", "_uuid": "array_append(%s, gen_random_uuid())", "json": "'[{}]'::json",
	}[kind]
	none := map[string]string{"text": "'x'", "numeric": "1", "bigint": "1", "integer": "1", "timestamp with time zone": "now()", "uuid": "gen_random_uuid()",
		"bytea": `'\x01'::bytea`}[kind]
	if strings.Contains(value, "%s") {
		value = fmt.Sprintf(value, column)
	}
	if none != "" {
		value = fmt.Sprintf("COALESCE(%s, %s)", value, none)
	}
	return value
}

// spoilable is a column of a table of the rows, as the catalog has it.
type spoilable struct {
	Table, Name, Kind string
	Key               bool
}

// spoilables returns the columns of every table, by table.
func spoilables(t *testing.T, live *pgxpool.Pool) (tables [][]spoilable) {
	t.Helper()
	rows, err := live.Query(t.Context(), `SELECT table_name::text, column_name::text, CASE data_type WHEN 'ARRAY' THEN udt_name ELSE data_type END::text, EXISTS (
			SELECT FROM pg_index WHERE indrelid = format('%I.%I', table_schema, table_name)::regclass AND indisprimary AND ordinal_position = ANY (indkey::smallint[]))
		FROM information_schema.columns c JOIN information_schema.tables USING (table_schema, table_name)
		WHERE NOT (SELECT relispartition FROM pg_class WHERE oid = format('%I.%I', table_schema, table_name)::regclass) AND table_schema = current_schema() AND table_type = 'BASE TABLE' AND table_name <> ALL ($1) ORDER BY 1, ordinal_position`, projections.NotProjected())
	must(t, err)
	columns, err := pgx.CollectRows(rows, pgx.RowToStructByPos[spoilable])
	must(t, err)
	if len(columns) < 350 {
		t.Fatalf("only %d columns", len(columns))
	}
	for i, c := range columns {
		if i == 0 || c.Table != columns[i-1].Table {
			tables = append(tables, nil)
		}
		last := len(tables) - 1
		tables[last] = append(tables[last], c)
	}
	return tables
}

// valued is true of the rows in which a column says something.
func valued(c spoilable) string {
	return fmt.Sprintf("(%[1]q IS NOT NULL AND %[1]q::text NOT IN ('', '{}', '[]', '\\x', 'null'))", c.Name)
}

// withoutValue returns the columns in which no row says anything, so that a change of one would be a change of nothing.
func withoutValue(t *testing.T, live *pgxpool.Pool) (empty []string) {
	t.Helper()
	for _, columns := range spoilables(t, live) {
		for _, c := range columns {
			var some bool
			must(t, live.QueryRow(t.Context(), fmt.Sprintf("SELECT EXISTS (SELECT FROM %q WHERE %s)", c.Table, valued(c))).Scan(&some))
			if !some {
				empty = append(empty, c.Table+"."+c.Name)
			}
		}
	}
	return empty
}

// TestEveryColumnOfEveryTableIsCompared changes one value of one row of each table at a time, whatever columns the catalog
// has, takes one row of each away, and adds one. Each is told with its table, its row and its column, and nothing else is.
func TestEveryColumnOfEveryTableIsCompared(t *testing.T) {
	ctx := t.Context()
	live, made := filled(t, everyColumn())
	admin := asAdmin(t, live)
	differences := func(tx pgx.Tx) (found []string) {
		t.Helper()
		must(t, pgx.BeginTxFunc(ctx, made, pgx.TxOptions{IsoLevel: pgx.RepeatableRead}, func(other pgx.Tx) (err error) {
			found, err = projections.Differences(ctx, tx, other, nil, 10, nil)
			return err
		}))
		return found
	}
	// after returns what is told of each table once a statement for each, which must change one row, is done. They are undone then.
	after := func(statements map[string]string) map[string][]string {
		t.Helper()
		tx, err := admin.Begin(ctx)
		must(t, err)
		defer tx.Rollback(ctx)
		_, err = tx.Exec(ctx, "SET LOCAL session_replication_role = replica") // nothing counts what is changed
		must(t, err)
		for _, statement := range statements {
			tag, err := tx.Exec(ctx, statement)
			if err != nil || tag.RowsAffected() != 1 {
				t.Fatalf("%s: %d rows, %v", statement, tag.RowsAffected(), err)
			}
		}
		told := make(map[string][]string)
		for _, difference := range differences(tx) {
			table, _, _ := strings.Cut(difference, " (")
			told[table] = append(told[table], difference)
			if statements[table] == "" {
				t.Errorf("of a table in which nothing was changed: %s", difference)
			}
		}
		return told
	}
	must(t, pgx.BeginFunc(ctx, live, func(tx pgx.Tx) error {
		check(t, "differences of the same rows", differences(tx), nil)
		return nil
	}))
	empty := withoutValue(t, live)
	// Nothing follows the state of a trigger's end.
	check(t, "the columns in which no row has a value", empty, []string{"trigger_history.result", "trigger_history.code", "trigger_history.reason_text", "trigger_history.reason"})
	tables, widest := spoilables(t, live), 0
	one := func(table string) string { return fmt.Sprintf("ctid = (SELECT max(ctid) FROM %q)", table) }
	removals := make(map[string]string)
	for _, columns := range tables {
		table := columns[0].Table
		widest, removals[table] = max(widest, len(columns)), fmt.Sprintf("DELETE FROM %q WHERE %s", table, one(table))
	}
	// To compare takes long. So a column of each table is changed at once: what is told of a table is about this table only.
	for at := range widest {
		var spoiling []spoilable
		updates := make(map[string]string)
		for _, columns := range tables {
			if at < len(columns) {
				c := columns[at]
				name := fmt.Sprintf("%q", c.Name)
				spoiling, updates[c.Table] = append(spoiling, c), fmt.Sprintf("UPDATE %q SET %s = %s WHERE ctid = (SELECT ctid FROM %[1]q ORDER BY %[4]s DESC, ctid DESC LIMIT 1)", c.Table, name, spoilt(name, c.Kind), valued(c))
			}
		}
		all := after(updates)
		for _, c := range spoiling {
			told := all[c.Table]
			switch {
			case c.Key: // it is another row then
				if len(told) != 2 || !strings.HasPrefix(told[0], c.Table+" (") || !strings.Contains(told[0], c.Name+" ") ||
					!strings.HasSuffix(told[0], "too many") || !strings.HasSuffix(told[1], "is missing") {
					t.Errorf("%s.%s: %q", c.Table, c.Name, told)
				}
			case len(told) != 1 || !strings.HasPrefix(told[0], c.Table+" (") || !strings.Contains(told[0], "): "+c.Name+" is "):
				t.Errorf("%s.%s: %q", c.Table, c.Name, told)
			}
		}
	}
	all := after(removals)
	for table := range removals {
		if told := all[table]; len(told) != 1 || !strings.HasPrefix(told[0], table+" (") || !strings.HasSuffix(told[0], "is missing") {
			t.Errorf("a row of %s taken away: %q", table, told)
		}
	}
	// A table and a column that nobody knows of are told, too.
	for statement, want := range map[string]string{
		"CREATE TABLE nobodys AS SELECT 1 AS n":                                                  "the table nobodys is one that no migration makes",
		"ALTER TABLE trades ADD COLUMN note text":                                                "trades has the column note, which no migration makes",
		"ALTER TABLE candles DROP COLUMN trades":                                                 "candles has no column trades",
		"DROP TABLE candles CASCADE":                                                             "the table candles is missing",
		"INSERT INTO leverages VALUES ('x', 'y', 'z', 1, 2)":                                     "leverages (customer_code x, symbol y): a row too many",
		"INSERT INTO anchors SELECT journal, 7, sequence, log_offset, hash FROM anchors LIMIT 1": "anchors (",
	} {
		func() {
			tx, err := live.Begin(ctx)
			must(t, err)
			defer tx.Rollback(ctx) // also where the statement fails: the pool would wait for the connection for ever
			_, err = tx.Exec(ctx, statement)
			must(t, err)
			if told := differences(tx); len(told) != 1 || !strings.HasPrefix(told[0], want) {
				t.Errorf("%s: %q", statement, told)
			}
		}()
	}
}

// TestAMovedLogIsNoDifference shifts the offsets of all that came before a record, as where a log was copied to a place
// without the gaps of the old one: positions are sequences and hashes. One offset alone is a difference.
func TestAMovedLogIsNoDifference(t *testing.T) {
	ctx := t.Context()
	live, made := filled(t, projectiontest.NewVenue(32).Entries(60))
	tx, err := live.Begin(ctx)
	must(t, err)
	defer tx.Rollback(ctx)
	for _, table := range []string{"records", "anchors"} {
		_, err := tx.Exec(ctx, `UPDATE `+table+` SET log_offset = log_offset + 7 WHERE journal = 'trading' AND sequence <= 40`)
		must(t, err)
	}
	must(t, pgx.BeginTxFunc(ctx, made, pgx.TxOptions{IsoLevel: pgx.RepeatableRead}, func(other pgx.Tx) error {
		told, err := projections.Differences(ctx, tx, other, nil, 10, nil)
		check(t, "of a log that was moved", told, nil)
		return err
	}))
}

// logReader is a projectiontest.Log as an audit reads it.
type logReader struct {
	projections.Reader
}

func (r logReader) Next(ctx context.Context) ([]record.Entry, int64, error) {
	entries, err := r.Poll(ctx)
	if err != nil {
		return nil, 0, err
	}
	return entries, entries[len(entries)-1].Position.Offset + 1, nil
}

func audited(trade, identity []record.Entry) []readmodels.Audited {
	of := func(rules decide.Rules, list []projections.Projection, entries []record.Entry) readmodels.Audited {
		log := projectiontest.NewLog(entries...)
		return readmodels.Audited{Rules: rules, Projections: list, Log: log, Read: func() readmodels.Records { return logReader{log.From(record.Before)} }}
	}
	j := []readmodels.Audited{of(trading.Rules(), readmodels.Trading(), trade), of(domainidentity.Rules(), readmodels.Identity(), identity)}
	j[0].Compare = func(ctx context.Context, pool *pgxpool.Pool, s decide.State, at int64) ([]string, error) {
		return readmodels.Compare(ctx, pool, s.(*trading.State), at)
	}
	return j
}

// TestAudit audits a venue that goes on meanwhile, rows that were spoilt, and rows of records that the log lost.
func TestAudit(t *testing.T) {
	ctx := t.Context()
	o, identity := projectiontest.NewOwner(t, 33), people(34)
	o.Play(500)
	live := projectiontest.Database(t)
	apply(t, live, "trading", readmodels.Trading(), o.Entries)
	apply(t, live, "identity", readmodels.Identity(), identity)
	last := o.Entries[len(o.Entries)-1].Position.Sequence
	o.Play(300)
	more := false
	run := func(trade []record.Entry) ([]record.LogPosition, []string, error) {
		a := readmodels.Audit{Live: live, Replay: readmodels.Replay{Target: projectiontest.Database(t), Journals: audited(trade, identity)}}
		a.Journals[0].Read = func(read func() readmodels.Records) func() readmodels.Records {
			return func() readmodels.Records {
				return hooked{read(), func() {
					if !more { // the live rows go on while the log is folded
						more = true
						apply(t, live, "trading", readmodels.Trading(), o.Entries)
					}
				}}
			}
		}(a.Journals[0].Read)
		return a.Run(ctx)
	}
	at, told, err := run(o.Entries)
	must(t, err)
	check(t, "differences", told, nil)
	end := o.Entries[len(o.Entries)-1].Position.Sequence
	check(t, "positions", at, []record.LogPosition{{Journal: "trading", Sequence: end}, {Journal: "identity", Sequence: 4}})
	if end == last {
		t.Error("the venue did not go on")
	}

	for what, sabotage := range map[string]string{
		"candles":  "UPDATE candles SET high = high + 0.1 WHERE ctid = (SELECT min(ctid) FROM candles)",
		"brokers":  "UPDATE brokers SET name = 'Omega'",
		"balances": "UPDATE balances SET balance = balance + 1 WHERE customer_code = 'C0'",
	} {
		_, err := live.Exec(ctx, sabotage)
		must(t, err)
		_, told, err := run(o.Entries)
		must(t, err)
		if len(told) == 0 || !strings.Contains(strings.Join(told, "\n"), what+" (") {
			t.Errorf("%s: %q", what, told)
		}
	}
	var diverged *record.DivergedError
	if _, _, err := run(o.Entries[:last]); !errors.As(err, &diverged) {
		t.Errorf("of a log that lost records: %v", err)
	}
	within, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	journals := audited(o.Entries[:last], identity)
	journals[0].Log = &shrinking{Log: journals[0].Log}
	replay := readmodels.Replay{Target: projectiontest.Database(t), Journals: journals}
	_, _, err = readmodels.Audit{Live: live, Replay: replay}.Run(within)
	if !errors.As(err, &diverged) {
		t.Errorf("of a log that lost records while it was audited: %v", err)
	}
}

// shrinking is a log that loses its end once it was asked where that is.
type shrinking struct {
	projections.Log
	asked atomic.Bool
}

func (s *shrinking) Tip(ctx context.Context) (int64, error) {
	end, err := s.Log.Tip(ctx)
	if !s.asked.Swap(true) {
		end += 1000
	}
	return end, err
}

// hooked calls something once records are read.
type hooked struct {
	readmodels.Records
	hook func()
}

func (h hooked) Next(ctx context.Context) ([]record.Entry, int64, error) {
	h.hook()
	return h.Records.Next(ctx)
}
