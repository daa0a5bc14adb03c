// Package document says what is kept of an uploaded file: what it is for, which side of something it shows, which kinds
// of files it may be, and under which name it is shown. What is in the file, package format tells.
package document

import (
	"path"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/perpetua-exchange/perpetua/domain/document/format"
)

// Category says what a document is for.
type Category string

// Undetermined is the category and the orientation of what neither is told of.
const Undetermined = "undetermined"

const (
	bankStatement = "bank_statement"
	misspelled    = "bank_statment" //nolint:misspell // as the interface was first published
	maxName       = 255
	maxEnding     = 16
)

// Categories lists all categories, in the order of the interface.
func Categories() []Category { return slices.Clone(categories) }

var categories = []Category{"id_document", "residence_permit", "poa", "selfie", "source_of_funds", "retail_edd", "corporate_edd",
	"article_of_association", "commercial_register_extract", "financial_statement", "transparency_register_extract", "organizational_chart",
	"proof_of_capability", "rfi_document", "pep_questionnaire", "carf_self_declaration", "contract", "power_of_attorney", "cv", bankStatement,
	"transaction_history", "kyt_report", "tx_monitoring_report", "sar", "onboarding_report", "termination_notice", "aml_policy",
	"proof_of_license", "other_corporate_document", "other_retail_document", "generic", "trading_history", "partner_cdd_report", Undetermined}

// ParseCategory reads a category; empty is undetermined. What was once misspelled is read and given back as it is spelled.
func ParseCategory(s string) (Category, bool) {
	switch s {
	case "":
		return Undetermined, true
	case misspelled:
		return bankStatement, true
	}
	return Category(s), slices.Contains(categories, Category(s))
}

// TakesTables reports whether documents of the category may be tables beside pictures and pages.
func (c Category) TakesTables() bool {
	switch c {
	case "transaction_history", "trading_history", bankStatement, "financial_statement":
		return true
	}
	return strings.HasSuffix(string(c), "_report")
}

// Takes reports whether a document of the category may be of a format.
func (c Category) Takes(f format.Format) bool { return !f.IsTable() || c.TakesTables() }

// Orientation is the side that a picture shows.
type Orientation string

// Orientations lists all orientations.
func Orientations() []Orientation { return []Orientation{"front", "back", Undetermined} }

// ParseOrientation reads an orientation; empty is undetermined.
func ParseOrientation(s string) (Orientation, bool) {
	if s == "" {
		return Undetermined, true
	}
	return Orientation(s), slices.Contains(Orientations(), Orientation(s))
}

// Name returns the name under which an upload is shown: the last element of the path that was sent, on whichever system,
// without what is no text, at most 255 characters: a longer one is cut before its ending, by which systems know what to do with
// a file. What leaves nothing is "file".
func Name(sent string) string {
	if i := strings.LastIndexAny(sent, `/\`); i >= 0 {
		sent = sent[i+1:]
	}
	name := strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == utf8.RuneError || unicode.Is(unicode.Bidi_Control, r) { // the last would show another ending than there is
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
