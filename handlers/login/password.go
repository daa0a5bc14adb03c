package login

import (
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"

	"golang.org/x/crypto/argon2"

	"github.com/perpetua-exchange/perpetua/domain/identity"
	"github.com/perpetua-exchange/perpetua/streams/seal"
)

// cost holds the argon2id parameters: memory in KiB, passes and lanes.
type cost struct {
	memory, passes uint32
	lanes          uint8
}

// standard is the cost of every new hash, except in tests that use less memory.
var standard = cost{memory: 64 << 10, passes: 3, lanes: 4}

// costOf returns the standard cost with the given memory in KiB, or the standard memory for 0.
func costOf(memory uint32) cost {
	c := standard
	if memory > 0 {
		c.memory = memory
	}
	return c
}

const (
	saltSize = 16
	hashSize = 32
	// MaxPassword is the maximum length of a password in bytes.
	MaxPassword = 1024
)

var errHash = errors.New("not an argon2id hash in PHC form")

// SealPassword hashes a password with argon2id and encrypts the hash for the user, for the commands user.register and
// user.change. memory is in KiB; 0 means 64 MiB.
func SealPassword(box *seal.Box, username, password string, memory uint32) (identity.Sealed, error) {
	return sealHash(box, username, hashPassword(password, costOf(memory)))
}

func sealHash(box *seal.Box, username, hash string) (identity.Sealed, error) {
	sealed, err := box.Seal([]byte(hash), passwordData(username))
	if err != nil {
		return nil, fmt.Errorf("password of user %s: %w", username, err)
	}
	return sealed, nil
}

// hashPassword returns a password's hash in PHC form: $argon2id$v=19$m=65536,t=3,p=4$salt$hash.
func hashPassword(password string, c cost) string {
	salt := random(saltSize)
	return phc(c, salt, argon2.IDKey([]byte(password), salt, c.passes, c.memory, c.lanes, hashSize))
}

// decoyHash returns a PHC string that matches no password. Verifying against it takes as long as against a real hash
// of the cost. Creating it takes no time.
func decoyHash(c cost) string { return phc(c, random(saltSize), random(hashSize)) }

func random(size int) []byte {
	b := make([]byte, size)
	rand.Read(b) // never returns an error
	return b
}

func phc(c cost, salt, hash []byte) string {
	return fmt.Sprintf("$argon2id$v=%d$m=%d,t=%d,p=%d$%s$%s", argon2.Version, c.memory, c.passes, c.lanes,
		base64.RawStdEncoding.EncodeToString(salt), base64.RawStdEncoding.EncodeToString(hash))
}

// verifyPassword hashes the password with the parameters of a PHC string and compares in constant time.
func verifyPassword(text, password string) (bool, error) {
	c, salt, hash, err := parsePHC(text)
	if err != nil {
		return false, err
	}
	got := argon2.IDKey([]byte(password), salt, c.passes, c.memory, c.lanes, uint32(len(hash)))
	return subtle.ConstantTimeCompare(got, hash) == 1, nil
}

func parsePHC(text string) (c cost, salt, hash []byte, err error) {
	parts := strings.Split(text, "$")
	if len(parts) != 6 || parts[0] != "" || parts[1] != "argon2id" || parts[2] != fmt.Sprintf("v=%d", argon2.Version) {
		return cost{}, nil, nil, errHash
	}
	if _, err := fmt.Sscanf(parts[3], "m=%d,t=%d,p=%d", &c.memory, &c.passes, &c.lanes); err != nil {
		return cost{}, nil, nil, errHash
	}
	// Limit the parameters: a manipulated hash in the log must not make each login use all memory.
	if c.memory < 8 || c.memory > 1<<20 || c.passes < 1 || c.passes > 16 || c.lanes < 1 {
		return cost{}, nil, nil, errHash
	}
	if salt, err = base64.RawStdEncoding.DecodeString(parts[4]); err != nil || len(salt) < 8 {
		return cost{}, nil, nil, errHash
	}
	if hash, err = base64.RawStdEncoding.DecodeString(parts[5]); err != nil || len(hash) < 16 || len(hash) > 64 {
		return cost{}, nil, nil, errHash
	}
	return c, salt, hash, nil
}
