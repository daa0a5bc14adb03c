// Package owner defines the owners that are onboarded, persons and corporates, and validates their records. The fields
// are personal data. They are validated here in the clear before they are sealed; after that, the rules cannot read
// them.
package owner

import "github.com/perpetua-exchange/perpetua/domain/scalar"

// Type is the type of an owner.
type Type string

// The owner types.
const (
	PersonType    Type = "person"
	CorporateType Type = "corporate"
)

// Valid reports whether t is one of the two types.
func (t Type) Valid() bool { return t == PersonType || t == CorporateType }

// Ref identifies an owner. The zero Ref means none and has no members in JSON.
type Ref struct {
	Type Type      `json:"owner_type,omitzero"`
	ID   scalar.ID `json:"owner_id,omitzero"`
}

// State says who may see the data of an owner.
type State string

// The states of an owner's record.
const (
	Active     State = "active"
	Restricted State = "restricted" // hidden from everyone except operators
	Erased     State = "erased"     // the owner's key is destroyed: the data cannot be decrypted
)

// Person is the record of a natural person. An empty member was not given.
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

// Corporate is the record of a legal person. An empty member was not given.
type Corporate struct {
	ExternalID           string  `json:"external_id"`
	LegalName            string  `json:"legal_name"`
	LegalForm            string  `json:"legal_form,omitempty"`
	RegistrationNumber   string  `json:"registration_number,omitempty"`
	IncorporationCountry string  `json:"incorporation_country,omitempty"` // ISO 3166-1 alpha-3
	Address              Address `json:"address,omitzero"`
}

// Address is a postal address. An empty member was not given.
type Address struct {
	Street      string `json:"street,omitempty"`
	HouseNumber string `json:"house_number,omitempty"`
	PostalCode  string `json:"postal_code,omitempty"`
	City        string `json:"city,omitempty"`
	Region      string `json:"region,omitempty"`
	Country     string `json:"country,omitempty"` // ISO 3166-1 alpha-3
}
