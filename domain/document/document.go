// Package document defines the attributes of an uploaded file: its category, its orientation, the file formats that a
// category accepts, and the displayed name. Package format inspects the content.
package document

import (
	"path"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/perpetua-exchange/perpetua/domain/document/format"
)

// Category is the purpose of a document.
type Category string

// Undetermined is the category and the orientation if the uploader gives none.
const Undetermined = "undetermined"

const (
	bankStatement = "bank_statement"
	misspelled    = "bank_statment" //nolint:misspell // as the interface was first published
	maxName       = 255
	maxEnding     = 16
)

// Categories lists all categories in the order of the interface.
func Categories() []Category { return slices.Clone(categories) }

var categories = []Category{"id_document", "residence_permit", "poa", "selfie", "source_of_funds", "retail_edd", "corporate_edd",
	"article_of_association", "commercial_register_extract", "financial_statement", "transparency_register_extract", "organizational_chart",
	"proof_of_capability", "rfi_document", "pep_questionnaire", "carf_self_declaration", "contract", "power_of_attorney", "cv", bankStatement,
	"transaction_history", "kyt_report", "tx_monitoring_report", "sar", "onboarding_report", "termination_notice", "aml_policy",
	"proof_of_license", "other_corporate_document", "other_retail_document", "generic", "trading_history", "partner_cdd_report", Undetermined}

// ParseCategory parses a category. The empty string means Undetermined. An old misspelling is accepted and corrected.
func ParseCategory(s string) (Category, bool) {
	switch s {
	case "":
		return Undetermined, true
	case misspelled:
		return bankStatement, true
	}
	return Category(s), slices.Contains(categories, Category(s))
}

// TakesTables reports whether the category accepts tables in addition to images and PDF files.
func (c Category) TakesTables() bool {
	switch c {
	case "transaction_history", "trading_history", bankStatement, "financial_statement":
		return true
	}
	return strings.HasSuffix(string(c), "_report")
}

// Takes reports whether the category accepts a format.
func (c Category) Takes(f format.Format) bool { return !f.IsTable() || c.TakesTables() }

// Orientation is the side of an object that an image shows.
type Orientation string

// Orientations lists all orientations.
func Orientations() []Orientation { return []Orientation{"front", "back", Undetermined} }

// ParseOrientation parses an orientation. The empty string means Undetermined.
func ParseOrientation(s string) (Orientation, bool) {
	if s == "" {
		return Undetermined, true
	}
	return Orientation(s), slices.Contains(Orientations(), Orientation(s))
}

// Name returns the displayed name of an upload: the last element of the path that the client sent, with / or \ as
// separators and without a \ at its end. Control characters, invalid characters, and bidirectional controls are removed.
// Names of more than 255 characters are shortened before their file extension. If nothing remains, the name is "file".
func Name(sent string) string {
	sent = strings.TrimRight(sent, `\`)
	if i := strings.LastIndexAny(sent, `/\`); i >= 0 {
		sent = sent[i+1:]
	}
	name := strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == utf8.RuneError || unicode.Is(unicode.Bidi_Control, r) { // bidi: fake extensions
			return -1
		}
		return r
	}, sent)
	if runes := []rune(name); len(runes) > maxName {
		ending := []rune(path.Ext(name))
		if len(ending) > maxEnding {
			ending = nil
		}
		name = string(append(runes[:maxName-len(ending)], ending...))
	}
	if name = strings.TrimSpace(name); name == "" || name == "." || name == ".." {
		return "file"
	}
	return name
}
