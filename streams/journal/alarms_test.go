package journal

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"log/slog"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// TestEveryAlarmHasItsSeries: each kind of alarm that the rules have a constant for, and that this package raises, is counted
// from 0 on, or its first alarm would be no increase.
func TestEveryAlarmHasItsSeries(t *testing.T) {
	metrics := NewMetrics()
	metrics.begin("trading")
	registry := prometheus.NewRegistry()
	registry.MustRegister(metrics.Alarms)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	begun := make(map[string]bool)
	for _, family := range families {
		for _, series := range family.GetMetric() {
			for _, label := range series.GetLabel() {
				begun[label.GetName()+" "+label.GetValue()] = true
			}
		}
	}
	rules, own := alarmConstants(t), alarmCalls(t)
	if len(rules) < 3 || len(own) < 3 {
		t.Fatalf("only %q and %q were found", rules, own)
	}
	for _, kind := range append(rules, own...) {
		if !begun["kind "+kind] {
			t.Errorf("%s is not counted from 0 on", kind)
		}
	}
}

// parsed returns the Go files of folders that are no tests.
func parsed(t *testing.T, folders string) (files []*ast.File) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(filepath.FromSlash(folders), "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
	}
	return files
}

// alarmConstants returns the texts of the constants of the rules whose names begin with Alarm.
func alarmConstants(t *testing.T) (kinds []string) {
	t.Helper()
	for _, file := range parsed(t, "../../domain/*") {
		ast.Inspect(file, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if !ok || !strings.HasPrefix(spec.Names[0].Name, "Alarm") {
				return true
			}
			for _, value := range spec.Values {
				kinds = append(kinds, texts(value)...)
			}
			return true
		})
	}
	return kinds
}

// alarmCalls returns the texts with which this package and package term call alarm.
func alarmCalls(t *testing.T) (kinds []string) {
	t.Helper()
	for _, file := range append(parsed(t, "."), parsed(t, "../term")...) {
		ast.Inspect(file, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok {
				if f, ok := call.Fun.(*ast.SelectorExpr); ok && f.Sel.Name == "alarm" {
					kinds = append(kinds, texts(call.Args[0])...)
				}
			}
			return true
		})
	}
	return kinds
}

// texts returns what an expression says, if that is a literal text.
func texts(e ast.Expr) []string {
	literal, ok := e.(*ast.BasicLit)
	if !ok || literal.Kind != token.STRING {
		return nil
	}
	text, err := strconv.Unquote(literal.Value)
	if err != nil {
		return nil
	}
	return []string{text}
}

// TestAlarmsOfTheRulesAreLoggedOnceAMinute: each thing that they say by itself, with how often it was said, and each is counted.
func TestAlarmsOfTheRulesAreLoggedOnceAMinute(t *testing.T) {
	var out bytes.Buffer
	o := &Owner{journal: "trading", log: slog.New(slog.NewTextHandler(&out, nil)), repeated: make(map[decide.Alarm]*repeated)}
	o.cfg.Client = &Client{cfg: Config{Metrics: NewMetrics()}}
	begin := scalar.Time(1_800_000_000_000_000)
	raise := func(second scalar.Time, says string) {
		o.alarmOfRules(begin+second*scalar.Second, decide.Alarm{Kind: "price_refused", Message: says}, "second", int64(second))
	}
	for second := range scalar.Time(120) {
		raise(second, "one")
		raise(second, "another")
	}
	lines := func(says string) (all []string) {
		for line := range strings.Lines(out.String()) {
			if _, line, ok := strings.Cut(line, "msg="+says+" "); ok {
				all = append(all, strings.TrimSpace(line))
			}
		}
		return all
	}
	want := []string{"alarm=price_refused second=0", "alarm=price_refused second=59 times=59"}
	for _, says := range []string{"one", "another"} {
		if got := lines(says); !slices.Equal(got, want) {
			t.Errorf("of %s the log has %q in two minutes", says, got)
		}
	}
	o.logRepeated(begin + 119*scalar.Second) // not yet
	o.logRepeated(begin + 120*scalar.Second)
	if got := lines("one"); len(got) != 3 || got[2] != "alarm=price_refused second=119 times=60" {
		t.Errorf("after two minutes the log has %q", got)
	}
	o.logRepeated(begin + 180*scalar.Second)
	if len(o.repeated) != 0 {
		t.Errorf("it still knows %v", o.repeated)
	}
	if n := testutil.ToFloat64(o.cfg.Client.cfg.Metrics.Alarms.WithLabelValues("trading", "price_refused")); n != 240 {
		t.Errorf("%g were counted", n)
	}
}

// TestAlarmOfVerifierSaysWhatIsMissing: a log that was trimmed is not said to have a wrong record.
func TestAlarmOfVerifierSaysWhatIsMissing(t *testing.T) {
	for _, c := range []struct {
		wrong error
		says  string
	}{
		{&record.BrokenRecordError{Journal: "trading"}, "a record is wrong"},
		{&record.DivergedError{Journal: "trading"}, "a record is wrong"},
		{&record.TrimmedError{Base: record.Base{Journal: "trading"}}, "--archive-url"},
		{&record.BaseError{Journal: "trading"}, "--archive-url"},
	} {
		var out bytes.Buffer
		client := &Client{cfg: Config{Metrics: NewMetrics(), Logger: slog.New(slog.NewTextHandler(&out, nil))}}
		client.AlarmOfVerifier("trading", c.wrong)
		if !strings.Contains(out.String(), c.says) || strings.Contains(out.String(), "a record is wrong") != (c.says == "a record is wrong") {
			t.Errorf("%T is logged as %s", c.wrong, out.String())
		}
	}
}
