package owner

import (
	"regexp"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Fault is an error in one member of a record.
type Fault struct {
	// Path is the name of the member, after the names of the objects that contain it.
	Path []string
	// Type is a machine-readable error type, as validators of JSON bodies use it: missing, string_too_long, value_error.
	Type    string
	Message string
}

// The error types.
const (
	Missing   = "missing"
	TooLong   = "string_too_long"
	BadValue  = "value_error"
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
func (p *Person) Check(today time.Time) []Fault {
	var f faults
	f.required("external_id", p.ExternalID)
	f.required("first_name", p.FirstName)
	f.required("last_name", p.LastName)
	f.country("nationality", p.Nationality)
	f.birthDate(p.BirthDate, today)
	f.email(p.Email)
	if f.text("phone", p.Phone) && p.Phone != "" && !phoneForm.MatchString(p.Phone) {
		f.add(BadValue, "must be a number in the form of E.164, like +4915112345678", "phone")
	}
	f.text("tax_identification_number", p.TaxIdentificationNumber)
	f.country("tax_country", p.TaxCountry)
	f.address(&p.Address)
	return f
}

// Check returns all errors in a corporate's record.
func (c *Corporate) Check() []Fault {
	var f faults
	f.required("external_id", c.ExternalID)
	f.required("legal_name", c.LegalName)
	f.text("legal_form", c.LegalForm)
	f.text("registration_number", c.RegistrationNumber)
	f.country("incorporation_country", c.IncorporationCountry)
	f.address(&c.Address)
	return f
}

type faults []Fault

func (f *faults) add(kind, message string, path ...string) {
	*f = append(*f, Fault{Path: path, Type: kind, Message: message})
}

// text reports whether a member is a line of text of valid length. Otherwise, it adds an error.
func (f *faults) text(name, value string, within ...string) bool {
	path := append(within, name)
	switch {
	case !IsLine(value):
		f.add(BadValue, "must be text without control characters", path...)
	case utf8.RuneCountInString(value) > maxText:
		f.add(TooLong, "must have at most 255 characters", path...)
	default:
		return true
	}
	return false
}

func (f *faults) required(name, value string) {
	if strings.TrimSpace(value) == "" {
		f.add(Missing, "is required", name)
		return
	}
	f.text(name, value)
}

func (f *faults) country(name, value string, within ...string) {
	if f.text(name, value, within...) && value != "" && !IsCountry(value) {
		f.add(BadValue, "must be an ISO 3166-1 alpha-3 country code", append(within, name)...)
	}
}

func (f *faults) birthDate(value string, today time.Time) {
	if value == "" {
		return
	}
	day, err := time.Parse(time.DateOnly, value)
	if err != nil || day.Year() < firstYear || day.After(today) {
		f.add(BadValue, "must be a day that has been, in the form 1990-12-31", "birth_date")
	}
}

func (f *faults) email(value string) {
	if value == "" {
		return
	}
	if len(value) > maxMail || !mailForm.MatchString(value) {
		f.add(BadValue, "must be an e-mail address", "email")
	}
}

func (f *faults) address(a *Address) {
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
