package seal

import (
	"bytes"
	"errors"
	"testing"
)

// TestAForeignBoxTreatsOtherKeysAsDestroyed opens what another key sealed, and what its own did.
func TestAForeignBoxTreatsOtherKeysAsDestroyed(t *testing.T) {
	at := AssociatedData{Owner: "person/01a2036b-99f6-7f7b-b190-cfe339c2aea9", Field: "name", Type: "person"}
	theirs, err := New(bytes.Repeat([]byte{1}, KeySize))
	if err != nil {
		t.Fatal(err)
	}
	own, err := New(bytes.Repeat([]byte{2}, KeySize))
	if err != nil {
		t.Fatal(err)
	}
	sealed, err := theirs.Seal([]byte("Ann"), at)
	if err != nil {
		t.Fatal(err)
	}
	var wrong *WrongKeyError
	if _, err := own.Open(sealed, at); !errors.As(err, &wrong) {
		t.Errorf("of a venue's own process: %v", err)
	}
	foreign := own.Foreign()
	if _, err := foreign.Open(sealed, at); !errors.Is(err, ErrDestroyed) {
		t.Errorf("%v", err)
	}
	if sealed, err = foreign.Seal([]byte("mine"), at); err != nil {
		t.Fatal(err)
	}
	if plain, err := own.Open(sealed, at); err != nil || string(plain) != "mine" {
		t.Errorf("%q %v", plain, err)
	}
	owners, err := OpenOwners(t.Context(), "mem://", foreign)
	if err != nil {
		t.Fatal(err)
	}
	defer owners.Close()
	if _, err := owners.Open(t.Context(), sealed, at); !errors.Is(err, ErrDestroyed) {
		t.Errorf("the data of an owner: %v", err)
	}
}
