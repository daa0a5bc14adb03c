package local

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
)

// User is a user that the first start creates, in the form of run.json and users.json.
type User struct {
	Username string   `json:"username"`
	Password string   `json:"password"`
	Broker   string   `json:"broker"`
	Scopes   []string `json:"scopes"`
}

// presetUsers returns the users without passwords.
func presetUsers() []User {
	return []User{
		{Username: "operator", Broker: "venue", Scopes: []string{"operator", "read"}},
		{Username: "auditor", Broker: "venue", Scopes: []string{"auditor", "read"}},
		{Username: "broker-a", Broker: "alpha", Scopes: []string{"trade", "read", "onboarding"}},
		{Username: "broker-b", Broker: "beta", Scopes: []string{"trade", "read", "onboarding"}},
	}
}

// KeptUsers reads the users and their passwords from the data folder. fresh reports that the file did not exist: the
// passwords are new and must be recorded in the identity journal.
func KeptUsers(path string) (users []User, fresh bool, err error) {
	content, err := os.ReadFile(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		users = presetUsers()
		for i := range users {
			if users[i].Password, err = randomPassword(); err != nil {
				return nil, false, err
			}
		}
		return users, true, nil
	case err != nil:
		return nil, false, fmt.Errorf("users: %w", err)
	}
	if err := json.Unmarshal(content, &users); err != nil {
		return nil, false, fmt.Errorf("users: %s: %w", path, err)
	}
	return users, false, nil
}

// WriteUsers writes the users to a file that only its owner may read.
func WriteUsers(path string, users []User) error {
	content, err := json.MarshalIndent(users, "", "  ")
	if err != nil {
		return err
	}
	return writeWhole(path, append(content, '\n'), 0o600)
}

// PrintUsers prints the users for humans.
func PrintUsers(w io.Writer, users []User) {
	fmt.Fprintf(w, "  %-10s %-26s %-8s %s\n", "user", "password", "broker", "scopes")
	for _, u := range users {
		fmt.Fprintf(w, "  %-10s %-26s %-8s %s\n", u.Username, u.Password, u.Broker, strings.Join(u.Scopes, " "))
	}
}

// randomPassword returns 144 random bits as 24 characters.
func randomPassword() (string, error) {
	b := make([]byte, 18)
	if _, err := rand.Read(b); err != nil {
		return "", err
	}
	return base64.RawURLEncoding.EncodeToString(b), nil
}
