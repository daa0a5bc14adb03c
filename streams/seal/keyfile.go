package seal

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"

	"github.com/perpetua-exchange/perpetua/domain/owner"
)

// keyFileSize is the length of every key file in bytes: one sector, which disks write whole or not at all. So if a
// power cut interrupts a destruction, the file holds either the key or the tombstone.
const keyFileSize = 512

// keyFile is the content of an owner's file in the key store: the key, sealed with the master key, or its tombstone.
type keyFile struct {
	Version   int       `json:"version"`
	Owner     string    `json:"owner"`
	KeyID     string    `json:"key_id"`
	Created   time.Time `json:"created_at,omitzero"`
	Destroyed time.Time `json:"destroyed_at,omitzero"`
	Key       []byte    `json:"key,omitempty"` // nil in a tombstone
}

// keyFileName returns the name of an owner's file. It fails if its argument is not an owner's reference, so that no
// name leads out of the folder.
func keyFileName(of string) (string, error) {
	if _, err := owner.ParseRef(of); err != nil {
		return "", err
	}
	return "owners/" + of, nil
}

// encode returns the file's content: a line of JSON, padded with spaces to keyFileSize.
func (f *keyFile) encode() ([]byte, error) {
	line, err := json.Marshal(f)
	if err != nil {
		return nil, err
	}
	if len(line) >= keyFileSize {
		return nil, fmt.Errorf("the file of a key would have %d bytes, which is above %d", len(line), keyFileSize)
	}
	line = append(line, bytes.Repeat([]byte{' '}, keyFileSize-1-len(line))...)
	return append(line, '\n'), nil
}

// decodeKeyFile decodes the result of encode for an owner. It returns ErrDamaged for any other content.
func decodeKeyFile(content []byte, of string) (*keyFile, error) {
	f := new(keyFile)
	if err := json.Unmarshal(content, f); err != nil || f.Version != 1 || f.Owner != of || f.KeyID == "" || f.Destroyed.IsZero() == (f.Key == nil) {
		return nil, fmt.Errorf("the key file of %s: %w", of, ErrDamaged)
	}
	return f, nil
}

// newKeyFile seals an owner's new key with the master key.
func newKeyFile(master *Box, of string, key []byte) (*keyFile, error) {
	box, err := New(key)
	if err != nil {
		return nil, err
	}
	sealed, err := master.Seal(key, keyData(of))
	return &keyFile{Version: 1, Owner: of, KeyID: longID(box), Created: now(), Key: sealed}, err
}

// open returns the owner's key. It returns ErrDestroyed for a tombstone, and ErrDamaged and *WrongKeyError like
// Box.Open.
func (f *keyFile) open(master *Box) (*Box, error) {
	if !f.Destroyed.IsZero() {
		return nil, ErrDestroyed
	}
	key, err := master.Open(f.Key, keyData(f.Owner))
	if err != nil {
		return nil, fmt.Errorf("the key of %s: %w", f.Owner, err)
	}
	box, err := New(key)
	if err == nil && longID(box) != f.KeyID {
		err = fmt.Errorf("the key of %s: %w", f.Owner, ErrDamaged)
	}
	return box, err
}

func keyData(of string) AssociatedData { return AssociatedData{of, "key", "owner"} }

// longID returns an id of an owner's key that does not reveal the key. The certificate of a destruction names it.
func longID(b *Box) string { return hex.EncodeToString(b.Derive("owner key id")[:16]) }

func now() time.Time { return time.Now().UTC().Truncate(time.Microsecond) }
