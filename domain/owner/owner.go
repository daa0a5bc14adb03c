// Package owner says who is onboarded: a person or a corporate, the fields that are kept of them, and which values those
// may have. The fields are personal data: they are checked here in clear, before they are sealed, and nothing behind
// that sees them again.
package owner

import "github.com/perpetua-exchange/perpetua/domain/scalar"

// Type is the kind of an owner.
type Type string

// The types of owners.
const (
	PersonType    Type = "person"
	CorporateType Type = "corporate"
)

// Valid reports whether t is one of the two types.
func (t Type) Valid() bool { return t == PersonType || t == CorporateType }

// Ref names one owner. The zero Ref names none, and has no members in JSON.
type Ref struct {
	Type Type      `json:"owner_type,omitzero"`
	ID   scalar.ID `json:"owner_id,omitzero"`
}

// State says who may see what is kept of an owner.
type State string

// The states of an owner's record.
const (
	Active     State = "active"
	Restricted State = "restricted" // hidden from all but operators
	Erased     State = "erased"     // its key is destroyed: nobody can read it
)

// Person is what is told of a natural person. An empty member says that nothing was told.
type Person struct {
	ExternalID              string  `json:"external_id"`
	FirstName               string  `json:"first_name"`
	LastName                string  `json:"last_name"`
	Nationality             string  `json:"nationality,omitempty"` // ISO 3166-1 alpha-3
	BirthDate               string  `json:"birth_date,omitempty"`  // 2006-01-02
	Email                   string  `json:"email,omitempty"`
	Phone                   string  `json:"phone,omitempty"` // E.164
	TaxIdentificationNumber string  `json:"tax_identification_number,omitempty"`
	TaxCountry              string  `json:"tax_country,omitempty"` // ISO 3166-1 alpha-3
	Address                 Address `json:"address,omitzero"`
}

// Corporate is what is told of a legal person. An empty member says that nothing was told.
type Corporate struct {
	ExternalID           string  `json:"external_id"`
	LegalName            string  `json:"legal_name"`
	LegalForm            string  `json:"legal_form,omitempty"`
	RegistrationNumber   string  `json:"registration_number,omitempty"`
	IncorporationCountry string  `json:"incorporation_country,omitempty"` // ISO 3166-1 alpha-3
	Address              Address `json:"address,omitzero"`
}

// Address is a postal address. An empty member says that nothing was told.
type Address struct {
	Street      string `json:"street,omitempty"`
	HouseNumber string `json:"house_number,omitempty"`
	PostalCode  string `json:"postal_code,omitempty"`
	City        string `json:"city,omitempty"`
	Region      string `json:"region,omitempty"`
	Country     string `json:"country,omitempty"` // ISO 3166-1 alpha-3
}
