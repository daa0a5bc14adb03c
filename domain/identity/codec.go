package identity

import (
	"crypto/sha256"
	"fmt"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/pack"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

// codecVersion is the version of the encoding in this file. It MUST change with the encoding and with the fields of
// State. TestTheFormIsThatOfItsVersion detects such changes.
const codecVersion = 5

// Codec returns the codec for states of the identity journal. It encodes sealed values without opening them.
func Codec() decide.StateCodec { return stateCodec{} }

type stateCodec struct{}

// Version implements decide.StateCodec.
func (stateCodec) Version() int { return codecVersion }

// userSize estimates the encoded size of a broker, a user or a key, in bytes.
const userSize = 300

// Size implements decide.StateCodec.
func (stateCodec) Size(state decide.State) int {
	s := state.(*State)
	return (len(s.brokers)+len(s.users)+len(s.keys)+len(s.apiKeys.byID))*userSize + s.core.Size()
}

// Append implements decide.StateCodec.
func (stateCodec) Append(b []byte, state decide.State) []byte {
	s, w := state.(*State), &pack.Writer{Bytes: b}
	w.Len(len(s.brokerOrder))
	for _, k := range s.Brokers() {
		w.Word(k.Broker)
		w.String(k.Name)
		w.Int(int64(k.Created))
	}
	w.Len(len(s.userOrder))
	for _, u := range s.Users() {
		w.String(u.Username)
		w.Word(u.Broker)
		w.String(u.CustomerCode)
		w.Bool(u.Scopes != nil)
		w.Len(len(u.Scopes))
		for _, scope := range u.Scopes {
			w.Word(scope)
		}
		w.Bool(u.IsActive)
		w.Bool(u.IsVerified)
		packLimit(w, u.RateLimit)
		w.String(string(u.PasswordHash))
		w.Int(int64(u.Created))
		w.Int(int64(u.Updated))
		w.Int(int64(u.PasswordChanged))
	}
	w.Len(len(s.keys))
	for _, k := range s.keys {
		w.String(k.KID)
		w.String(string(k.Public))
		w.String(string(k.Private))
		w.Int(int64(k.Created))
		w.Int(int64(k.Retired))
	}
	w.Len(len(s.apiKeys.byID))
	for _, username := range s.userOrder {
		for _, k := range s.APIKeys(username) {
			k.pack(w)
		}
	}
	s.core.Pack(w)
	return w.Bytes
}

func (k *APIKey) pack(w *pack.Writer) {
	w.Raw(k.ID[:])
	w.String(k.Username)
	w.Word(k.Broker)
	w.String(k.Name)
	w.String(k.Prefix)
	w.String(string(k.Hash))
	w.Len(len(k.Scopes))
	for _, scope := range k.Scopes {
		w.Word(scope)
	}
	w.String(k.CustomerCode)
	w.Len(len(k.IPAllowList))
	for _, network := range k.IPAllowList {
		w.String(network)
	}
	w.Int(int64(k.ExpiresAt))
	w.Int(int64(k.Created))
	w.Int(int64(k.LastUsed))
	packLimit(w, k.RateLimit)
}

func packLimit(w *pack.Writer, l *RateLimit) {
	w.Bool(l != nil)
	if l != nil {
		w.Int(l.PerSecond)
		w.Int(l.Burst)
	}
}

func readLimit(r *pack.Reader) *RateLimit {
	if !r.Bool() {
		return nil
	}
	return &RateLimit{PerSecond: r.Int(), Burst: r.Int()}
}

func readAPIKey(r *pack.Reader) *APIKey {
	k := new(APIKey)
	r.Raw(k.ID[:])
	k.Username, k.Broker, k.Name, k.Prefix, k.Hash = r.String(), r.Word(), r.String(), r.String(), []byte(r.String())
	for range r.Len(1) {
		k.Scopes = append(k.Scopes, r.Word())
	}
	k.CustomerCode = r.String()
	for range r.Len(1) {
		k.IPAllowList = append(k.IPAllowList, r.String())
	}
	k.ExpiresAt, k.Created, k.LastUsed = scalar.Time(r.Int()), scalar.Time(r.Int()), scalar.Time(r.Int())
	k.RateLimit = readLimit(r)
	return k
}

// Read implements decide.StateCodec.
func (stateCodec) Read(b []byte) (decide.State, error) {
	s, r := NewState(), pack.NewReader(b)
	for range r.Len(3) {
		k := &Broker{Broker: r.Word(), Name: r.String(), Created: scalar.Time(r.Int())}
		s.brokerOrder = append(s.brokerOrder, k.Broker)
		s.brokers[k.Broker] = k
	}
	for range r.Len(12) {
		u := readUser(r)
		s.userOrder = append(s.userOrder, u.Username)
		s.users[u.Username] = u
	}
	for range r.Len(5) {
		s.keys = append(s.keys, &SigningKey{KID: r.String(), Public: []byte(r.String()), Private: Sealed(r.String()),
			Created: scalar.Time(r.Int()), Retired: scalar.Time(r.Int())})
	}
	n := r.Len(13)
	for range n {
		k := readAPIKey(r)
		if _, known := s.users[k.Username]; !known || len(k.Hash) != sha256.Size {
			r.Fail(pack.ErrForm)
			break
		}
		s.apiKeys.add(k)
	}
	s.core.Unpack(r)
	if len(s.brokers) != len(s.brokerOrder) || len(s.users) != len(s.userOrder) || len(s.apiKeys.byID) != n || len(s.apiKeys.byHash) != n {
		r.Fail(pack.ErrForm)
	}
	if err := r.Done(); err != nil {
		return nil, fmt.Errorf("identity: %w", err)
	}
	return s, nil
}

func readUser(r *pack.Reader) *User {
	u := &User{Username: r.String(), Broker: r.Word(), CustomerCode: r.String()}
	some, n := r.Bool(), r.Len(1)
	if some {
		u.Scopes = make([]string, 0, n)
	}
	for range n {
		u.Scopes = append(u.Scopes, r.Word())
	}
	u.IsActive, u.IsVerified = r.Bool(), r.Bool()
	u.RateLimit = readLimit(r)
	u.PasswordHash, u.Created, u.Updated = Sealed(r.String()), scalar.Time(r.Int()), scalar.Time(r.Int())
	u.PasswordChanged = scalar.Time(r.Int())
	return u
}
