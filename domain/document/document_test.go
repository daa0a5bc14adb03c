package document

import (
	"strings"
	"testing"

	"github.com/perpetua-exchange/perpetua/domain/document/format"
)

func TestCategories(t *testing.T) {
	if n := len(Categories()); n != 34 {
		t.Errorf("%d categories", n)
	}
	for _, c := range Categories() {
		if got, known := ParseCategory(string(c)); !known || got != c {
			t.Errorf("%s is read as %s, %t", c, got, known)
		}
	}
	for s, want := range map[string]Category{"": Undetermined, "bank_statment": "bank_statement"} { //nolint:misspell // as it is sent
		if got, known := ParseCategory(s); !known || got != want {
			t.Errorf("%q is read as %s, %t", s, got, known)
		}
	}
	for _, s := range []string{"passport", "POA", " poa", "bank_statemnt"} {
		if _, known := ParseCategory(s); known {
			t.Errorf("%q is no category", s)
		}
	}
}

func TestTables(t *testing.T) {
	var with []string
	for _, c := range Categories() {
		if !c.Takes(format.PDF) || !c.Takes(format.HEIC) || c.Takes(format.CSV) != c.TakesTables() || c.Takes(format.XLSX) != c.TakesTables() {
			t.Errorf("%s", c)
		}
		if c.TakesTables() {
			with = append(with, string(c))
		}
	}
	const want = "financial_statement bank_statement transaction_history kyt_report tx_monitoring_report onboarding_report trading_history partner_cdd_report"
	if got := strings.Join(with, " "); got != want {
		t.Errorf("tables are taken as %s", got)
	}
}

func TestOrientations(t *testing.T) {
	for s, known := range map[string]bool{"front": true, "back": true, "undetermined": true, "": true, "Front": false, "left": false} {
		if _, got := ParseOrientation(s); got != known {
			t.Errorf("%q: %t", s, got)
		}
	}
}

func TestNames(t *testing.T) {
	for sent, want := range map[string]string{
		"passport.pdf":                     "passport.pdf",
		"/home/anna/passport.pdf":          "passport.pdf",
		`C:\scans\passport.pdf`:            "passport.pdf",
		`passport.pdf\\`:                   "passport.pdf",
		`\`:                                "file",
		"../../etc/passwd":                 "passwd",
		"a\x00b\r\n.pdf":                   "ab.pdf",
		"bad\xff.pdf":                      "bad.pdf",
		"invoice\u202efdp.exe":             "invoicefdp.exe",
		" scan .png ":                      "scan .png",
		"":                                 "file",
		"folder/":                          "file",
		"..":                               "file",
		"Übersicht 2026.xlsx":              "Übersicht 2026.xlsx",
		strings.Repeat("é", 300):           strings.Repeat("é", 255),
		strings.Repeat("é", 300) + ".jpeg": strings.Repeat("é", 250) + ".jpeg",
		strings.Repeat("é", 300) + "." + strings.Repeat("x", 20): strings.Repeat("é", 255),
		"a." + strings.Repeat("x", 300):                          "a." + strings.Repeat("x", 253),
		strings.Repeat("x/", 300):                                "file",
		"\u200f\u202a\u2066hidden":                               "hidden",
		"tab\tand\u0085next line.md":                             "tabandnext line.md",
	} {
		if got := Name(sent); got != want {
			t.Errorf("%q is shown as %q, want %q", sent, got, want)
		}
	}
}
