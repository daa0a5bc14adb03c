package seal

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"time"
)

// ErrNoSecret reports that the key store has no secret of a generation.
var ErrNoSecret = errors.New("the key store holds no secret of this generation: restore the key store, or check --key-url")

// Secret is the secret of one generation. Package commitment derives the salts of record roots from those of the venue.
type Secret struct {
	Generation int    // from 1
	ID         string // names the secret without revealing it: 16 bytes in hex
	Key        []byte // KeySize random bytes
}

// Generations holds secrets in the key store, each sealed with the master key. A secret is never changed or removed: record roots
// or signatures depend on it. Generations is safe for concurrent use.
type Generations struct {
	store  *KeyStore
	master *Box
	folder string // of the secrets' objects
}

// NewGenerations returns the venue's secrets of record roots in a key store.
func NewGenerations(store *KeyStore, master *Box) *Generations {
	return &Generations{store, master, "commitment"}
}

// SigningSeeds returns the seeds of the Ed25519 keys that sign the transparency log of an origin. log names the log: a
// slash-separated path.
func SigningSeeds(store *KeyStore, master *Box, log string) *Generations {
	return &Generations{store, master, "tlog/" + log}
}

// secretFile is the content of a secret's object.
type secretFile struct {
	Version    int       `json:"version"`
	Generation int       `json:"generation"`
	ID         string    `json:"id"`
	Created    time.Time `json:"created_at"`
	Key        []byte    `json:"key"` // sealed with the master key
}

func (g *Generations) name(generation int) string { return g.folder + "/" + strconv.Itoa(generation) }

func (g *Generations) associatedData(generation int) AssociatedData {
	return AssociatedData{"venue", "key", g.name(generation)}
}

// secretID returns the id of a secret.
func secretID(key []byte) (string, error) {
	box, err := New(key)
	if err != nil {
		return "", err
	}
	return hex.EncodeToString(box.Derive("commitment secret id")[:16]), nil
}

// Get returns the secret of a generation. Its errors are ErrNoSecret, ErrDamaged, *WrongKeyError, and ErrAway.
func (g *Generations) Get(ctx context.Context, generation int) (Secret, error) {
	content, err := g.store.Read(ctx, g.name(generation))
	if errors.Is(err, fs.ErrNotExist) {
		return Secret{}, fmt.Errorf("generation %d: %w", generation, ErrNoSecret)
	}
	if err != nil {
		return Secret{}, err
	}
	var f secretFile
	if err := json.Unmarshal(content, &f); err != nil || f.Version != 1 || f.Generation != generation {
		return Secret{}, fmt.Errorf("%s: %w", g.name(generation), ErrDamaged)
	}
	key, err := g.master.Open(f.Key, g.associatedData(generation))
	if err != nil {
		return Secret{}, fmt.Errorf("%s: %w", g.name(generation), err)
	}
	if id, err := secretID(key); err != nil || id != f.ID {
		return Secret{}, fmt.Errorf("%s: %w", g.name(generation), ErrDamaged)
	}
	return Secret{generation, f.ID, key}, nil
}

// Secret returns the bytes and the id of a generation's secret. Its errors are those of Get.
func (g *Generations) Secret(ctx context.Context, generation int) (key []byte, id string, err error) {
	s, err := g.Get(ctx, generation)
	return s.Key, s.ID, err
}

// Create returns the secret of a generation, and makes it if there is none. It returns once the secret is durable. Nodes that call
// it at the same time get the same secret. The caller MUST NOT have used a secret of this generation: where one was used and is
// gone, another one gives other roots.
func (g *Generations) Create(ctx context.Context, generation int) (Secret, error) {
	if generation < 1 {
		return Secret{}, fmt.Errorf("generations count from 1, not %d", generation)
	}
	content, err := g.encode(generation)
	if err != nil {
		return Secret{}, err
	}
	// The store takes only the first object, so the secret that counts is the one that it returns, also to the node that created
	// it. An object that exists may not be durable yet: store.Create makes it so.
	if err := g.store.Create(ctx, g.name(generation), content); err != nil && !errors.Is(err, fs.ErrExist) {
		return Secret{}, err
	}
	return g.Get(ctx, generation)
}

// encode returns the content of a new secret's object.
func (g *Generations) encode(generation int) ([]byte, error) {
	key := make([]byte, KeySize)
	rand.Read(key) // never fails
	id, err := secretID(key)
	if err != nil {
		return nil, err
	}
	sealed, err := g.master.Seal(key, g.associatedData(generation))
	if err != nil {
		return nil, err
	}
	line, err := json.Marshal(secretFile{1, generation, id, now(), sealed})
	return append(line, '\n'), err
}

// Format prints the id of the secret and not its key.
func (s Secret) Format(to fmt.State, _ rune) {
	fmt.Fprintf(to, "(secret %s of generation %d)", s.ID, s.Generation)
}
