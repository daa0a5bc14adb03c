package wire

import (
	"github.com/perpetua-exchange/perpetua/domain/identity"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

// APIKey is an API key, without its secret, as its user and operators see it.
type APIKey struct {
	ID           scalar.ID    `json:"id"`
	Name         string       `json:"name"`
	Prefix       string       `json:"prefix"`
	Scopes       []string     `json:"scopes"`
	CustomerCode *string      `json:"customer_code"`
	IPAllowList  []string     `json:"ip_allow_list"`
	ExpiresAt    *scalar.Time `json:"expires_at"`
	Created      scalar.Time  `json:"created"`
	LastUsed     *string      `json:"last_used"` // the last day of use that the log records
	// RateLimit replaces the rate limit of the key's user. It is nil if the key has no limit.
	RateLimit *identity.RateLimit `json:"rate_limit"`
}

// NewAPIKey converts a key to its JSON form.
func NewAPIKey(k *identity.APIKey) APIKey {
	out := APIKey{ID: k.ID, Name: k.Name, Prefix: k.Prefix, Scopes: k.Scopes, IPAllowList: k.IPAllowList, Created: k.Created, RateLimit: k.RateLimit}
	if k.CustomerCode != "" {
		out.CustomerCode = &k.CustomerCode
	}
	if out.IPAllowList == nil {
		out.IPAllowList = []string{}
	}
	if !k.ExpiresAt.IsZero() {
		out.ExpiresAt = &k.ExpiresAt
	}
	if !k.LastUsed.IsZero() {
		day := k.LastUsed.String()[:len("2006-01-02")]
		out.LastUsed = &day
	}
	return out
}
