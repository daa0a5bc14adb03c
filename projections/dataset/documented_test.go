package dataset

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/parquet-go/parquet-go"

	"github.com/perpetua-exchange/perpetua/projections/projectiontest"
)

// schemaOf returns the schema of a table, as a file of it has it.
func schemaOf(t testing.TB, of table) *parquet.Schema {
	t.Helper()
	var content strings.Builder
	w := of.create(&content, NewBooks())
	_, err := w.close(headerKey, "")
	must(t, err)
	f, err := parquet.OpenFile(strings.NewReader(content.String()), int64(content.Len()))
	must(t, err)
	if f.Schema().Name() != of.name {
		t.Errorf("the schema of %s has the name %s", of.name, f.Schema().Name())
	}
	return f.Schema()
}

// TestColumnsAreDocumented compares the columns of each table with its row in the documentation.
func TestColumnsAreDocumented(t *testing.T) {
	doc, err := os.ReadFile(filepath.Join(schemas, "README.md"))
	must(t, err)
	_, section, _ := strings.Cut(string(doc), "\n## Parquet\n")
	name := regexp.MustCompile("`([a-z_]+)`")
	documented := map[string][]string{}
	for line := range strings.Lines(section) {
		cells := strings.Split(line, "|")
		if len(cells) != 5 || !strings.HasPrefix(cells[1], " `") {
			continue
		}
		var columns []string
		for _, m := range name.FindAllStringSubmatch(cells[3], -1) {
			if m[1] == "trades" {
				columns = append(columns, documented["trades"]...)
				continue
			}
			columns = append(columns, m[1])
		}
		documented[strings.Trim(cells[1], " `")] = columns
	}
	for _, of := range tables() {
		columns := append([]string{"sequence", "ordinal", "time"}, documented[of.name]...)
		var found []string
		for _, c := range schemaOf(t, of).Fields() {
			found = append(found, c.Name())
		}
		slices.Sort(columns)
		slices.Sort(found)
		if !slices.Equal(found, columns) {
			t.Errorf("%s has the columns %v, and the documentation names %v", of.name, found, columns)
		}
	}
	if len(documented) != len(tables()) {
		t.Errorf("the documentation has %d tables of %d", len(documented), len(tables()))
	}
}

// fieldIDs are the columns of each table in the order of their field ids, which never change. A column that is removed stays here.
var fieldIDs = map[string]string{
	"orders": "sequence ordinal time event code customer_code broker symbol action type status amount filled_amount cash_amount filled_quote limit_price trigger_price " +
		"stop_loss_price take_profit_price trigger_price_type triggered average_fill_price time_in_force expire_time post_only reduce_only reason created",
	"trades":        "sequence ordinal time code order_code customer_code broker symbol action price amount notional fee fee_currency role type",
	"liquidations":  "sequence ordinal time code order_code customer_code broker symbol action price amount notional fee fee_currency role type realized_pnl",
	"postings":      "sequence ordinal time code account customer_code broker type currency amount balance symbol order_code",
	"funding":       "sequence ordinal time code customer_code broker symbol currency amount funding_rate position_amount mark_price",
	"funding_rates": "sequence ordinal time symbol instant funding_rate index_price mark_price interval_seconds missed",
	"positions":     "sequence ordinal time customer_code broker symbol amount cost entry_price",
	"prices":        "sequence ordinal time symbol index_price mark_price premium",
	"books":         "sequence ordinal time second symbol side level price amount orders",
	"triggers":      "sequence ordinal time trigger_id entitlement_id owner_id owner_type tenant action status result actor_kind code request_id outcome",
	"responses":     "sequence ordinal time id questionnaire_id questionnaire_version_id version_number owner_id owner_type tenant",
}

// versionOfSchemas and hashOfSchemas change together: a change of the columns needs a new Version. A new table changes only the hash.
const (
	versionOfSchemas = 2
	hashOfSchemas    = "063fb392687bbc2963bcada3e1042b1f118b4acb980803b78fbe2a0a0cf183ab"
)

// TestFieldIDsAreFixed compares the field ids in the files with the list, and all schemas with those of the version.
func TestFieldIDsAreFixed(t *testing.T) {
	all := sha256.New()
	for _, of := range tables() {
		all.Write(of.schema[:])
		want := strings.Fields(fieldIDs[of.name])
		seen := map[int]bool{}
		for _, c := range schemaOf(t, of).Fields() {
			if id := c.ID(); id < 1 || id > len(want) || want[id-1] != c.Name() || seen[id] {
				t.Errorf("the column %s of %s has the field id %d", c.Name(), of.name, id)
			}
			seen[c.ID()] = true
		}
	}
	if got := hex.EncodeToString(all.Sum(nil)); Version != versionOfSchemas || got != hashOfSchemas {
		t.Errorf("version %d has schemas with the hash %s. After a change of columns, raise Version, and change both constants", Version, got)
	}
}

// TestProjectNamesEveryView compares the sources of the dbt project with the views for analysts.
func TestProjectNamesEveryView(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(schemas, "dbt", "models", "sources.yml"))
	must(t, err)
	var file struct {
		Sources []struct {
			Name   string
			Tables []struct{ Name string }
		}
	}
	must(t, yaml.NewDecoder(strings.NewReader(string(text))).Decode(&file))
	var named, views []string
	for _, view := range file.Sources[0].Tables {
		named = append(named, view.Name)
	}
	rows, err := projectiontest.Database(t).Query(t.Context(), "SELECT name FROM analytics.contents ORDER BY name")
	must(t, err)
	for rows.Next() {
		var name string
		must(t, rows.Scan(&name))
		views = append(views, name)
	}
	must(t, rows.Err())
	if !slices.Equal(named, views) {
		t.Errorf("the project has the views %v, and the database %v", named, views)
	}
}
