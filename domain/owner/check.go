package owner

import (
	"regexp"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/perpetua-exchange/perpetua/domain/validation"
)

// Limits of the members of a record.
const (
	maxText   = 255
	maxMail   = 254 // RFC 5321: a path of 256 with its brackets
	firstYear = 1900
)

// phoneForm is E.164: a plus sign and at most 15 digits, the first of which is not 0.
var phoneForm = regexp.MustCompile(`^\+[1-9][0-9]{1,14}$`)

// mailForm is the usual form of an e-mail address (RFC 5321, 4.1.2): atoms before and after the @, without quoted
// strings and IP addresses. Only sending a message shows whether the address exists.
var mailForm = regexp.MustCompile("^[\\pL\\pN!#$%&'*+/=?^_`{|}~-]+(\\.[\\pL\\pN!#$%&'*+/=?^_`{|}~-]+)*@[\\pL\\pN]([\\pL\\pN-]*[\\pL\\pN])?(\\.[\\pL\\pN]([\\pL\\pN-]*[\\pL\\pN])?)+$")

// Check returns all errors in a person's record. No birth date may be after today.
func (p *Person) Check(today time.Time) []validation.FieldError {
	var f checks
	f.required("external_id", p.ExternalID)
	f.required("first_name", p.FirstName)
	f.required("last_name", p.LastName)
	f.country("nationality", p.Nationality)
	f.birthDate(p.BirthDate, today)
	f.email(p.Email)
	if f.text("phone", p.Phone) && p.Phone != "" && !phoneForm.MatchString(p.Phone) {
		f.AddKind(validation.ValueError, "must be a number in the form of E.164, like +4915112345678", "phone")
	}
	f.text("tax_identification_number", p.TaxIdentificationNumber)
	f.country("tax_country", p.TaxCountry)
	f.address(&p.Address)
	return f.List
}

// Check returns all errors in a corporate's record.
func (c *Corporate) Check() []validation.FieldError {
	var f checks
	f.required("external_id", c.ExternalID)
	f.required("legal_name", c.LegalName)
	f.text("legal_form", c.LegalForm)
	f.text("registration_number", c.RegistrationNumber)
	f.country("incorporation_country", c.IncorporationCountry)
	f.address(&c.Address)
	return f.List
}

// checks collects the errors of a record. Paths have the names of the objects that contain the member, then its name.
type checks struct{ validation.Errors }

// text reports whether a member is a line of text of valid length. Otherwise, it adds an error.
func (f *checks) text(name, value string, within ...any) bool {
	path := append(within, name)
	switch {
	case !IsLine(value):
		f.AddKind(validation.ValueError, "must be text without control characters", path...)
	case utf8.RuneCountInString(value) > maxText:
		f.AddTooLong(maxText, path...)
	default:
		return true
	}
	return false
}

func (f *checks) required(name, value string) {
	if strings.TrimSpace(value) == "" {
		f.AddKind(validation.Missing, "is required", name)
		return
	}
	f.text(name, value)
}

func (f *checks) country(name, value string, within ...any) {
	if f.text(name, value, within...) && value != "" && !IsCountry(value) {
		f.AddKind(validation.ValueError, "must be an ISO 3166-1 alpha-3 country code", append(within, name)...)
	}
}

func (f *checks) birthDate(value string, today time.Time) {
	if value == "" {
		return
	}
	day, err := time.Parse(time.DateOnly, value)
	if err != nil || day.Year() < firstYear || day.After(today) {
		f.AddKind(validation.ValueError, "must be a day that has been, in the form 1990-12-31", "birth_date")
	}
}

func (f *checks) email(value string) {
	if value == "" {
		return
	}
	if len(value) > maxMail || !mailForm.MatchString(value) {
		f.AddKind(validation.ValueError, "must be an e-mail address", "email")
	}
}

func (f *checks) address(a *Address) {
	const in = "address"
	f.text("street", a.Street, in)
	f.text("house_number", a.HouseNumber, in)
	f.text("postal_code", a.PostalCode, in)
	f.text("city", a.City, in)
	f.text("region", a.Region, in)
	f.country("country", a.Country, in)
}

// IsLine reports whether s is valid UTF-8 without control characters. Every member of a record must be.
func IsLine(s string) bool { return utf8.ValidString(s) && !strings.ContainsFunc(s, unicode.IsControl) }
