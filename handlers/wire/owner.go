package wire

import (
	"github.com/perpetua-exchange/perpetua/domain/onboarding"
	"github.com/perpetua-exchange/perpetua/domain/owner"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

// Person is a person as its tenant and operators see it. Optional members that are not set are null.
type Person struct {
	ID                      scalar.ID   `json:"id"`
	ExternalID              string      `json:"external_id"`
	FirstName               string      `json:"first_name"`
	LastName                string      `json:"last_name"`
	Nationality             *string     `json:"nationality"`
	BirthDate               *string     `json:"birth_date"`
	Email                   *string     `json:"email"`
	Phone                   *string     `json:"phone"`
	TaxIdentificationNumber *string     `json:"tax_identification_number"`
	TaxCountry              *string     `json:"tax_country"`
	Address                 *Address    `json:"address"`
	State                   owner.State `json:"state"`
	Created                 scalar.Time `json:"created_at"`
	Updated                 scalar.Time `json:"updated_at"`
}

// Corporate is a corporate as its tenant and operators see it. Optional members that are not set are null.
type Corporate struct {
	ID                   scalar.ID   `json:"id"`
	ExternalID           string      `json:"external_id"`
	LegalName            string      `json:"legal_name"`
	LegalForm            *string     `json:"legal_form"`
	RegistrationNumber   *string     `json:"registration_number"`
	IncorporationCountry *string     `json:"incorporation_country"`
	Address              *Address    `json:"address"`
	State                owner.State `json:"state"`
	Created              scalar.Time `json:"created_at"`
	Updated              scalar.Time `json:"updated_at"`
}

// OperatedPerson is a person with its tenant, as operators see it.
type OperatedPerson struct {
	Person
	Tenant string `json:"tenant"`
}

// OperatedCorporate is a corporate with its tenant, as operators see it.
type OperatedCorporate struct {
	Corporate
	Tenant string `json:"tenant"`
}

// ErasedOwner is an owner that was erased since, as of a past record. It has no personal data.
type ErasedOwner struct {
	ID      scalar.ID   `json:"id"`
	State   owner.State `json:"state"` // as of the record
	Tenant  string      `json:"tenant"`
	Created scalar.Time `json:"created_at"`
	Updated scalar.Time `json:"updated_at"`
	Erased  bool        `json:"erased"` // always true
}

// NewErasedOwner returns the unencrypted fields of an owner.
func NewErasedOwner(o *onboarding.Owner) ErasedOwner {
	return ErasedOwner{o.ID, o.State, o.Tenant, o.Created, o.Updated, true}
}

// Address is a postal address. Members that are not set are null.
type Address struct {
	Street      *string `json:"street"`
	HouseNumber *string `json:"house_number"`
	PostalCode  *string `json:"postal_code"`
	City        *string `json:"city"`
	Region      *string `json:"region"`
	Country     *string `json:"country"`
}

// NewPerson combines the unencrypted fields of an owner with the decrypted personal data.
func NewPerson(o *onboarding.Owner, p *owner.Person) Person {
	return Person{ID: o.ID, ExternalID: p.ExternalID, FirstName: p.FirstName, LastName: p.LastName, Nationality: nullIfEmpty(p.Nationality),
		BirthDate: nullIfEmpty(p.BirthDate), Email: nullIfEmpty(p.Email), Phone: nullIfEmpty(p.Phone), TaxIdentificationNumber: nullIfEmpty(p.TaxIdentificationNumber),
		TaxCountry: nullIfEmpty(p.TaxCountry), Address: newAddress(&p.Address), State: o.State, Created: o.Created, Updated: o.Updated}
}

// NewCorporate combines the unencrypted fields of an owner with the decrypted data of the corporate.
func NewCorporate(o *onboarding.Owner, c *owner.Corporate) Corporate {
	return Corporate{ID: o.ID, ExternalID: c.ExternalID, LegalName: c.LegalName, LegalForm: nullIfEmpty(c.LegalForm),
		RegistrationNumber: nullIfEmpty(c.RegistrationNumber), IncorporationCountry: nullIfEmpty(c.IncorporationCountry), Address: newAddress(&c.Address),
		State: o.State, Created: o.Created, Updated: o.Updated}
}

func newAddress(a *owner.Address) *Address {
	if *a == (owner.Address{}) {
		return nil
	}
	return &Address{nullIfEmpty(a.Street), nullIfEmpty(a.HouseNumber), nullIfEmpty(a.PostalCode), nullIfEmpty(a.City), nullIfEmpty(a.Region), nullIfEmpty(a.Country)}
}

// nullIfEmpty returns a pointer to s, or nil if s is empty.
func nullIfEmpty(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}
