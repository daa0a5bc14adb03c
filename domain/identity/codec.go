package identity

import (
	"crypto/sha256"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/pack"
)

// codecVersion is the version of the encoding in this file. It MUST change with the encoding and with the fields of
// State. TestTheFormIsThatOfItsVersion detects such changes.
const codecVersion = 8

// Codec returns the codec for states of the identity journal. It encodes sealed values without opening them.
func Codec() decide.StateCodec {
	return decide.VisitCodec[*State]{Journal: "identity", Number: codecVersion, New: NewState, Visit: (*State).visit}
}

// visit visits the whole state. What is read goes into s, which is new.
func (s *State) visit(c *pack.Coder) {
	pack.Ordered(c, &s.brokerOrder, s.brokers, func(b *Broker) string { return b.visit(c) })
	pack.Ordered(c, &s.userOrder, s.users, func(u *User) string { return u.visit(c) })
	pack.List(c, &s.keys, func(k *SigningKey) { k.visit(c) })
	var keys []*APIKey
	for _, username := range s.userOrder {
		if !c.Reading() {
			keys = append(keys, s.APIKeys(username)...)
		}
	}
	pack.List(c, &keys, func(k *APIKey) {
		k.visit(c)
		if c.Reading() {
			_, twice := s.apiKeys.byHash[hashOf(k)]
			c.Check(s.users[k.Username] != nil && len(k.Hash) == sha256.Size && !twice && s.apiKeys.byID[k.ID] == nil)
			s.apiKeys.add(k)
		}
	})
	s.core.Visit(c)
}

// visit returns the broker's code.
func (b *Broker) visit(c *pack.Coder) string {
	pack.Word(c, &b.Broker)
	pack.String(c, &b.Name)
	pack.Int(c, &b.Created)
	return b.Broker
}

// visit returns the username.
func (u *User) visit(c *pack.Coder) string {
	pack.String(c, &u.Username)
	pack.Word(c, &u.Broker)
	pack.String(c, &u.CustomerCode)
	present := u.Scopes != nil // JSON tells an empty list from none
	c.Bool(&present)
	if c.Reading() && present {
		u.Scopes = []string{}
	}
	pack.Slice(c, &u.Scopes, visitWord)
	c.Bool(&u.IsActive)
	c.Bool(&u.IsVerified)
	pack.Optional(c, &u.RateLimit, (*RateLimit).visit)
	pack.Bytes(c, &u.PasswordHash)
	pack.Int(c, &u.Created)
	pack.Int(c, &u.Updated)
	pack.Int(c, &u.PasswordChanged)
	return u.Username
}

func (k *SigningKey) visit(c *pack.Coder) {
	pack.String(c, &k.KID)
	pack.Bytes(c, &k.Public)
	pack.Bytes(c, &k.Private)
	pack.Int(c, &k.Created)
	pack.Int(c, &k.Retired)
}

func (k *APIKey) visit(c *pack.Coder) {
	c.Raw(k.ID[:])
	pack.String(c, &k.Username)
	pack.Word(c, &k.Broker)
	pack.String(c, &k.Name)
	pack.String(c, &k.Prefix)
	pack.Bytes(c, &k.Hash)
	pack.Slice(c, &k.Scopes, visitWord)
	pack.String(c, &k.CustomerCode)
	pack.Slice(c, &k.IPAllowList, func(network *string, c *pack.Coder) { pack.String(c, network) })
	pack.Int(c, &k.ExpiresAt)
	pack.Int(c, &k.Created)
	pack.Int(c, &k.LastUsed)
	pack.Optional(c, &k.RateLimit, (*RateLimit).visit)
}

func (l *RateLimit) visit(c *pack.Coder) {
	pack.Int(c, &l.PerSecond)
	pack.Int(c, &l.Burst)
}

func visitWord(word *string, c *pack.Coder) { pack.Word(c, word) }
