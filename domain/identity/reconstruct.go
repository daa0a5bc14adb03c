package identity

import (
	"github.com/perpetua-exchange/perpetua/domain/decide"
)

// The events of this journal carry the whole payload of every command. Secrets are in them as in the payloads: sealed or
// hashed.

// RecordsInputs implements decide.InputRecorder. No command of this journal has an input.
func (*State) RecordsInputs() bool { return true }

// Reconstruct implements decide.Payload.
func (p *RegisterBroker) Reconstruct(r *decide.Evidence) error {
	if e, ok := decide.EventOf[*BrokerRegistered](r); ok {
		p.Broker, p.Name = e.Broker.Broker, e.Name
	}
	return nil
}

// Reconstruct implements decide.Payload.
func (p *RegisterUser) Reconstruct(r *decide.Evidence) error {
	if e, ok := decide.EventOf[*UserRegistered](r); ok {
		u := e.User.clone()
		*p = RegisterUser{Username: u.Username, Broker: u.Broker, CustomerCode: u.CustomerCode, Scopes: u.Scopes, IsActive: u.IsActive,
			IsVerified: u.IsVerified, RateLimit: u.RateLimit, PasswordHash: u.PasswordHash}
	}
	return nil
}

// Reconstruct implements decide.Payload. To set a member to the value that it has is to leave it unchanged.
func (p *ChangeUser) Reconstruct(r *decide.Evidence) error {
	if e, ok := decide.EventOf[*UserChanged](r); ok {
		u := e.User.clone()
		*p = ChangeUser{Username: u.Username, CustomerCode: &u.CustomerCode, Scopes: u.Scopes, IsActive: &u.IsActive,
			IsVerified: &u.IsVerified, RateLimit: u.RateLimit, ClearRateLimit: u.RateLimit == nil, PasswordHash: u.PasswordHash}
	}
	return nil
}

// Reconstruct implements decide.Payload.
func (p *AddSigningKey) Reconstruct(r *decide.Evidence) error {
	if e, ok := decide.EventOf[*SigningKeyAdded](r); ok {
		k := e.SigningKey.clone()
		*p = AddSigningKey{KID: k.KID, Public: k.Public, Private: k.Private}
	}
	return nil
}

// Reconstruct implements decide.Payload.
func (p *CreateAPIKey) Reconstruct(r *decide.Evidence) error {
	if e, ok := decide.EventOf[*APIKeyCreated](r); ok {
		k := e.APIKey.clone()
		*p = CreateAPIKey{Name: k.Name, Prefix: k.Prefix, Hash: k.Hash, Scopes: k.Scopes, CustomerCode: k.CustomerCode,
			IPAllowList: k.IPAllowList, ExpiresAt: k.ExpiresAt}
	}
	return nil
}

// Reconstruct implements decide.Payload.
func (p *RevokeAPIKey) Reconstruct(r *decide.Evidence) error {
	if e, ok := decide.EventOf[*APIKeyRevoked](r); ok {
		p.ID = e.ID
	}
	return nil
}

// Reconstruct implements decide.Payload.
func (p *UseAPIKey) Reconstruct(r *decide.Evidence) error {
	if e, ok := decide.EventOf[*APIKeyUsed](r); ok {
		p.ID = e.ID
	}
	return nil
}

// Reconstruct implements decide.Payload.
func (p *LimitAPIKey) Reconstruct(r *decide.Evidence) error {
	if e, ok := decide.EventOf[*APIKeyLimited](r); ok {
		*p = LimitAPIKey{Username: e.Username, ID: e.ID, RateLimit: cloneLimit(e.RateLimit)}
	}
	return nil
}

// Reconstruct implements decide.Payload.
func (p *RetireSigningKey) Reconstruct(r *decide.Evidence) error {
	if e, ok := decide.EventOf[*SigningKeyRetired](r); ok {
		p.KID = e.KID
	}
	return nil
}
