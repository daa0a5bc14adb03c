package login

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"runtime"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/labstack/echo/v4"

	"github.com/perpetua-exchange/perpetua/domain/identity"
	"github.com/perpetua-exchange/perpetua/domain/validation"
	"github.com/perpetua-exchange/perpetua/handlers/web/access"
	"github.com/perpetua-exchange/perpetua/handlers/web/problem"
	"github.com/perpetua-exchange/perpetua/handlers/web/rest"
	"github.com/perpetua-exchange/perpetua/streams/logclock"
	"github.com/perpetua-exchange/perpetua/streams/record"
	"github.com/perpetua-exchange/perpetua/streams/seal"
)

const identityJournal = "identity"

const (
	maxForm     = 64 << 10
	maxUsername = 256
)

// DefaultIssuer is the issuer of tokens if none is configured.
const DefaultIssuer = "perpetua"

// Options configures a Handler.
type Options struct {
	Identity record.Follower
	Box      *seal.Box
	Issuer   string
	// Audience returns the audience of new tokens. If it is nil, tokens carry none. If its name is empty, login fails.
	Audience func() access.Audience
	Now      func() time.Time
	// Hashes limits concurrent password hashes, each of which takes 64 MiB. 0 means one per processor, at most 8.
	Hashes int
	// PasswordMemory is the memory argument that SealPassword gets.
	PasswordMemory uint32
	// Starting reports whether the node is starting, so that Identity may lack users. It may be nil.
	Starting func() bool
}

// Handler serves the login and the key set.
type Handler struct {
	identity record.Follower
	starting func() bool
	box      *seal.Box
	signer   *signer
	attempts *attempts
	slots    chan struct{} // one slot for each concurrent hash
	queue    queue
	decoy    string // the hash that is compared for unknown users
}

// New returns a handler.
func New(o Options) *Handler { return newHandler(o, costOf(o.PasswordMemory)) }

func newHandler(o Options, c cost) *Handler {
	if o.Hashes <= 0 {
		o.Hashes = min(max(runtime.GOMAXPROCS(0), 1), 8)
	}
	if o.Starting == nil {
		o.Starting = func() bool { return false }
	}
	return &Handler{
		identity: o.Identity,
		starting: o.Starting,
		box:      o.Box,
		signer: &signer{identity: o.Identity, box: o.Box, issuer: o.Issuer, audience: o.Audience, now: o.Now, clock: logclock.Of(o.Identity, o.Now),
			unsealed: make(map[string]ed25519.PrivateKey)},
		attempts: newAttempts(o.Now),
		slots:    make(chan struct{}, o.Hashes),
		decoy:    decoyHash(c),
	}
}

// Register adds the routes.
func (h *Handler) Register(e *echo.Echo) {
	e.POST("/auth/jwt/login", h.login)
	e.GET("/.well-known/jwks.json", h.keys)
}

// grant is the response to a login.
type grant struct {
	AccessToken string `json:"access_token"`
	TokenType   string `json:"token_type"`
}

func (h *Handler) login(c echo.Context) error {
	username, password, err := credentials(c)
	if err != nil {
		return err
	}
	// A user may just have been created through another node. If the request names the position of that record, wait
	// for it instead of reporting a wrong password. Wait before entering the queue, so that a waiting request takes
	// no queue slot from other logins.
	if err := rest.Await(c, identityJournal, h.identity); err != nil {
		return err
	}
	ctx := c.Request().Context()
	address := access.NetworkOf(c.RealIP()).String()
	// Enter the queue before waiting for the turn: waiting requests must count, or a flood of logins for one account
	// would wait without limit.
	if !h.queue.enter(address) {
		return problem.Unavailable("LOGIN_BUSY", "Too many logins at once.", time.Second)
	}
	defer h.queue.leave(address)
	attempt, wait, err := h.attempts.begin(ctx, pair{username, address})
	if err != nil {
		return err
	}
	if wait > 0 {
		return problem.New(http.StatusTooManyRequests, "LOGIN_TOO_MANY_ATTEMPTS",
			"Too many failed attempts. Try again later.").RetryAfter(wait)
	}
	result := undecided // also if the client disconnects, which is neither a guess nor a success
	defer func() { h.attempts.finish(attempt, result) }()

	starting := h.starting() // before the user is looked up
	user, err := h.verify(ctx, username, password)
	if err != nil {
		return err
	}
	if user == nil || !user.IsActive {
		result = failed // also while the node starts: guesses count
		if starting {
			return problem.Unavailable("NOT_READY", "The node is starting and has not read all users yet.", time.Second)
		}
		return problem.New(http.StatusBadRequest, "LOGIN_BAD_CREDENTIALS", "The username or the password is wrong.")
	}
	result = succeeded // the password was correct, even if a later step fails
	if !user.IsVerified {
		return problem.New(http.StatusBadRequest, "LOGIN_USER_NOT_VERIFIED", "The user is not verified.")
	}
	token, err := h.signer.issue(user)
	if errors.Is(err, errNoKey) {
		return problem.Unavailable("LOGIN_NO_SIGNING_KEY", "There is no key to sign tokens with yet.", time.Second).Because(err)
	}
	if err != nil {
		return err
	}
	c.Response().Header().Set(echo.HeaderCacheControl, "no-store")
	return c.JSON(http.StatusOK, grant{AccessToken: token, TokenType: "bearer"})
}

// verify returns the user if the password is correct, else nil. An unknown user takes as long as a known one.
func (h *Handler) verify(ctx context.Context, username, password string) (*identity.User, error) {
	var user *identity.User
	View(h.identity, func(s *identity.State) { user, _ = s.User(username) })
	hash := h.decoy
	if user != nil {
		opened, err := h.box.Open(user.PasswordHash, passwordData(username))
		if err != nil {
			return nil, fmt.Errorf("password of user %s: %w", username, err)
		}
		hash = string(opened)
	}
	select {
	case h.slots <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	right, err := verifyPassword(hash, password) // cannot be interrupted, so it keeps the slot until it ends
	<-h.slots
	if err != nil {
		return nil, fmt.Errorf("password of user %s: %w", username, err)
	}
	if !right {
		return nil, nil
	}
	return user, nil
}

// keysAge is the caching time of the key set. A new key does not sign until it has been in the set for this long.
const keysAge = time.Duration(identity.KeyDelay) * time.Microsecond

func (h *Handler) keys(c echo.Context) error {
	if err := rest.NoQuery(c); err != nil {
		return err
	}
	select {
	case <-h.identity.CaughtUp():
	default: // a client may keep a set that lacks keys for long, and refuse good tokens
		return problem.Unavailable("NOT_READY", "The node is starting and has not read all keys yet.", time.Second)
	}
	return rest.CachedJSON(c, keysAge, h.signer.keySet())
}

// credentials reads the form and reports all errors. A body of another content type counts as an empty form. Other
// fields of an OAuth2 form are allowed and ignored.
func credentials(c echo.Context) (username, password string, err error) {
	form, err := readForm(c)
	if err != nil {
		return "", "", err
	}
	var errs validation.Errors
	add := func(name, kind string, args []any, input any) {
		errs.Add(validation.FieldError{Path: validation.At(name), Kind: kind, Args: args, Input: input})
	}
	if grantType := form.Get("grant_type"); grantType != "" && grantType != "password" {
		add("grant_type", validation.StringPattern, []any{"^password$"}, shown(grantType))
	}
	read := func(name string, limit int, secret bool) string {
		v := form.Get(name)
		input := shown(v)
		if secret {
			input = nil
		}
		switch {
		case v == "":
			add(name, validation.Missing, nil, nil)
		case len(v) > limit:
			add(name, validation.StringTooLong, []any{limit, "characters"}, nil)
		case !utf8.ValidString(v):
			add(name, validation.StringUnicode, nil, nil)
		case strings.ContainsFunc(v, unicode.IsControl):
			errs.Add(validation.FieldError{Path: validation.At(name), Kind: validation.ValueError, Message: "the text holds a control character", Input: input})
		}
		return v
	}
	username = read("username", maxUsername, false)
	password = read("password", MaxPassword, true)
	if len(errs.List) > 0 {
		return "", "", problem.Invalid(errs.List...)
	}
	return username, password, nil
}

// shown returns the input to repeat in an error, or nil if it is long or not valid UTF-8.
func shown(v string) any {
	if len(v) > maxUsername || !utf8.ValidString(v) {
		return nil
	}
	return v
}

func readForm(c echo.Context) (url.Values, error) {
	r := c.Request()
	media, _, err := mime.ParseMediaType(r.Header.Get(echo.HeaderContentType))
	if err != nil || media != echo.MIMEApplicationForm {
		return url.Values{}, nil
	}
	raw, err := io.ReadAll(http.MaxBytesReader(c.Response(), r.Body, maxForm))
	if err != nil {
		return nil, err
	}
	values, err := url.ParseQuery(string(raw))
	if err != nil {
		return nil, problem.Invalid(validation.FieldError{Kind: validation.ValueError, Message: "the form is not encoded correctly"})
	}
	// The last value of a repeated field counts, as in the service that this interface is compatible with.
	for name, v := range values {
		values[name] = v[len(v)-1:]
	}
	return values, nil
}
