package seal

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"strings"
	"time"

	"gocloud.dev/secrets"
	"gocloud.dev/secrets/localsecrets" // scheme base64key
)

// keeperPatience bounds a request to the key management service. It is used only at start, which cannot succeed without
// it.
const keeperPatience = 30 * time.Second

// wrap encrypts the master key with a key management service and stores the ciphertext. If another process was first,
// wrap returns the key of that process.
func wrap(ctx context.Context, s store, at string, key []byte) ([]byte, error) {
	wrapped, err := withKeeper(ctx, at, func(ctx context.Context, k *secrets.Keeper) ([]byte, error) { return k.Encrypt(ctx, key) })
	if err != nil {
		return nil, err
	}
	err = s.create(ctx, WrappedFile, []byte(base64.StdEncoding.EncodeToString(wrapped)+"\n"))
	if errors.Is(err, fs.ErrExist) {
		return unwrap(ctx, s, at)
	}
	return key, err
}

// unwrap decrypts the store's master key with the service. If the store holds a key in the clear, unwrap encrypts it
// first: that is how a venue that started without a service adopts one.
func unwrap(ctx context.Context, s store, at string) ([]byte, error) {
	text, err := s.read(ctx, WrappedFile)
	if errors.Is(err, fs.ErrNotExist) {
		clear, err := read(ctx, s)
		if err != nil {
			return nil, err
		}
		if _, err := wrap(ctx, s, at, clear); err != nil {
			return nil, err
		}
		return unwrap(ctx, s, at) // verifies that the key can be decrypted, before the clear one is removed
	}
	if err != nil {
		return nil, err
	}
	wrapped, err := base64.StdEncoding.DecodeString(strings.TrimSpace(string(text)))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", WrappedFile, err)
	}
	key, err := withKeeper(ctx, at, func(ctx context.Context, k *secrets.Keeper) ([]byte, error) { return k.Decrypt(ctx, wrapped) })
	if err != nil {
		return nil, err
	}
	if len(key) != KeySize {
		return nil, fmt.Errorf("%s holds %d bytes, not %d", WrappedFile, len(key), KeySize)
	}
	return key, dropClear(ctx, s, key)
}

// dropClear removes the master key in the clear after checking that the wrapped one is the same.
func dropClear(ctx context.Context, s store, key []byte) error {
	clear, err := read(ctx, s)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if string(clear) != string(key) {
		return fmt.Errorf("%s and %s hold different master keys: remove the wrong one", File, WrappedFile)
	}
	return s.remove(ctx, File)
}

// withKeeper calls a key management service. The service's URL may hold a secret, so errors do not include it.
func withKeeper(ctx context.Context, at string, ask func(context.Context, *secrets.Keeper) ([]byte, error)) ([]byte, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, keeperPatience, fmt.Errorf("it does not answer within %v", keeperPatience))
	defer cancel()
	scheme, err := checkKMS(at)
	if err != nil {
		return nil, fmt.Errorf("--kms-url: %w", err)
	}
	k, err := secrets.OpenKeeper(ctx, at)
	if err != nil {
		return nil, fmt.Errorf("the key management service (%s): %w", scheme, err)
	}
	defer k.Close()
	out, err := ask(ctx, k)
	if err != nil {
		return nil, fmt.Errorf("the key management service (%s): %w", scheme, err)
	}
	return out, nil
}

// CheckKMS validates the URL of a key management service without a request to it.
func CheckKMS(at string) error {
	_, err := checkKMS(at)
	return err
}

// checkKMS returns the scheme of a valid URL, without the prefixes that the library allows.
func checkKMS(at string) (scheme string, err error) {
	u, err := url.Parse(at)
	if err != nil || u.Scheme == "" {
		return "", errors.New("the value is not a URL with the scheme of a service, like awskms://")
	}
	scheme = strings.TrimPrefix(strings.TrimPrefix(u.Scheme, "secrets+keeper+"), "secrets+")
	if known := secrets.DefaultURLMux(); !known.ValidKeeperScheme(scheme) {
		return "", fmt.Errorf("this binary has no service %q: it has %s", scheme, strings.Join(known.KeeperSchemes(), ", "))
	}
	if scheme != localsecrets.Scheme {
		return scheme, nil
	}
	// For a URL without a key, the library takes a random one. The master key could not be decrypted later.
	if _, err := localsecrets.Base64Key(u.Host); err != nil || u.RawQuery != "" {
		return "", fmt.Errorf("%s takes %d bytes in URL-safe base64", scheme, KeySize)
	}
	return scheme, nil
}
