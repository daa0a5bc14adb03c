package owner

import (
	"strings"
	"testing"
	"time"

	"golang.org/x/text/language"

	"github.com/perpetua-exchange/perpetua/domain/validation"
)

var today = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

func anna() Person {
	return Person{ExternalID: "p-1", FirstName: "Anna", LastName: "Øst", Nationality: "DEU", BirthDate: "1990-02-28", Email: "anna@example.org",
		Phone: "+4915112345678", TaxIdentificationNumber: "12 345", TaxCountry: "AUT",
		Address: Address{Street: "Long Lane", HouseNumber: "1a", PostalCode: "10115", City: "Berlin", Region: "Berlin", Country: "DEU"}}
}

func acme() Corporate {
	return Corporate{ExternalID: "c-1", LegalName: "Acme", LegalForm: "GmbH", RegistrationNumber: "HRB 1", IncorporationCountry: "DEU", Address: Address{Country: "DEU"}}
}

// TestPersons changes one member of a good record at a time.
func TestPersons(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*Person)
		want   string
	}{
		"all members":                  {func(*Person) {}, ""},
		"only what is required":        {func(p *Person) { *p = Person{ExternalID: "1", FirstName: "A", LastName: "B"} }, ""},
		"no external id":               {func(p *Person) { p.ExternalID = "" }, "external_id missing"},
		"a name of blanks":             {func(p *Person) { p.FirstName = " \u00a0" }, "first_name missing"},
		"a long name":                  {func(p *Person) { p.LastName = strings.Repeat("é", 256) }, "last_name string_too_long"},
		"the longest name":             {func(p *Person) { p.LastName = strings.Repeat("é", 255) }, ""},
		"a control character":          {func(p *Person) { p.LastName = "a\u0007b" }, "last_name value_error"},
		"bytes that are no text":       {func(p *Person) { p.Address.City = "a\xff" }, "address.city value_error"},
		"two letters for a country":    {func(p *Person) { p.Nationality = "DE" }, "nationality value_error"},
		"small letters for a country":  {func(p *Person) { p.TaxCountry = "deu" }, "tax_country value_error"},
		"a country that was":           {func(p *Person) { p.Address.Country = "DDR" }, "address.country value_error"},
		"a day that is not":            {func(p *Person) { p.BirthDate = "2023-02-29" }, "birth_date value_error"},
		"born tomorrow":                {func(p *Person) { p.BirthDate = "2026-11-23" }, "birth_date value_error"},
		"born today":                   {func(p *Person) { p.BirthDate = "2026-11-22" }, ""},
		"born too long ago":            {func(p *Person) { p.BirthDate = "1899-12-31" }, "birth_date value_error"},
		"an instant for a day":         {func(p *Person) { p.BirthDate = "1990-02-28T00:00:00Z" }, "birth_date value_error"},
		"a mailbox with a name":        {func(p *Person) { p.Email = "Anna <anna@example.org>" }, "email value_error"},
		"letters of any language":      {func(p *Person) { p.Email = "j.müller+x@straße.example" }, ""},
		"two at signs":                 {func(p *Person) { p.Email = "a@b@example.org" }, "email value_error"},
		"a host without a dot":         {func(p *Person) { p.Email = "a@localhost" }, "email value_error"},
		"a dot at the end":             {func(p *Person) { p.Email = "a@example.org." }, "email value_error"},
		"a hyphen at an edge":          {func(p *Person) { p.Email = "a@-example.org" }, "email value_error"},
		"a line break behind it":       {func(p *Person) { p.Email = "a@example.org\n" }, "email value_error"},
		"a long address":               {func(p *Person) { p.Email = "a@" + strings.Repeat("x.", 127) + "org" }, "email value_error"},
		"no domain":                    {func(p *Person) { p.Email = "anna" }, "email value_error"},
		"a number without plus":        {func(p *Person) { p.Phone = "004915112345678" }, "phone value_error"},
		"a number that is too long":    {func(p *Person) { p.Phone = "+4915112345678901" }, "phone value_error"},
		"a number with other numerals": {func(p *Person) { p.Phone = "+4٣15112345678" }, "phone value_error"},
		"everything is told at once": {func(p *Person) { *p = Person{Nationality: "XXX", Phone: "1"} },
			"external_id missing, first_name missing, last_name missing, nationality value_error, phone value_error"},
	} {
		t.Run(name, func(t *testing.T) {
			p := anna()
			test.change(&p)
			if got := told(p.Check(today)); got != test.want {
				t.Errorf("%s, want %s", got, test.want)
			}
		})
	}
}

// TestCorporates does the same with a corporate.
func TestCorporates(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*Corporate)
		want   string
	}{
		"all members":           {func(*Corporate) {}, ""},
		"only what is required": {func(c *Corporate) { *c = Corporate{ExternalID: "1", LegalName: "A"} }, ""},
		"no name":               {func(c *Corporate) { c.LegalName = "" }, "legal_name missing"},
		"a long form":           {func(c *Corporate) { c.LegalForm = strings.Repeat("x", 256) }, "legal_form string_too_long"},
		"a line break":          {func(c *Corporate) { c.RegistrationNumber = "a\nb" }, "registration_number value_error"},
		"no such country":       {func(c *Corporate) { c.IncorporationCountry = "EUR" }, "incorporation_country value_error"},
		"nor there":             {func(c *Corporate) { c.Address.Country = "UK" }, "address.country value_error"},
	} {
		t.Run(name, func(t *testing.T) {
			c := acme()
			test.change(&c)
			if got := told(c.Check()); got != test.want {
				t.Errorf("%s, want %s", got, test.want)
			}
		})
	}
}

func told(all []validation.FieldError) string {
	out := make([]string, len(all))
	for i, f := range all {
		out[i] = f.Path.String() + " " + f.Kind
	}
	return strings.Join(out, ", ")
}

// TestCountries holds the table against the regions of the Unicode CLDR: every code is known there as a country, by just
// this code.
func TestCountries(t *testing.T) {
	known := 0
	for a := 'A'; a <= 'Z'; a++ {
		for b := 'A'; b <= 'Z'; b++ {
			for c := 'A'; c <= 'Z'; c++ {
				code := string([]rune{a, b, c})
				if !IsCountry(code) {
					continue
				}
				known++
				r, err := language.ParseRegion(code)
				if err != nil || !r.IsCountry() || r.ISO3() != code || r.Canonicalize() != r {
					t.Errorf("%s: %v, %v", code, r, err)
				}
			}
		}
	}
	if known != 249 {
		t.Errorf("%d countries", known)
	}
	for _, code := range []string{"", "DE", "deu", "DEUX", "XKX", "ZZZ", "EUU"} {
		if IsCountry(code) {
			t.Errorf("%q is no country of ISO 3166-1", code)
		}
	}
}
