// Package tlog serves the transparency logs of the journals: checkpoints, tiles, and entry bundles in the form of
// c2sp.org/tlog-tiles, and the keys that verify the checkpoints.
//
// A log is served below /tlog/<journal>/<partition> and below its origin, which adds the journal's id. Below its origin, only the
// log of that journal is served, even if the venue begins another one.
package tlog

import (
	"context"
	"errors"
	"io/fs"
	"net/http"
	"strconv"
	"time"

	"github.com/labstack/echo/v4"
	"golang.org/x/mod/sumdb/tlog"

	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/handlers/web/problem"
	"github.com/perpetua-exchange/perpetua/handlers/web/rest"
	"github.com/perpetua-exchange/perpetua/streams/transparency"
)

// Log is the transparency log of a journal partition. *transparency.Reader implements it.
type Log interface {
	// Checkpoint returns the last checkpoint. It returns fs.ErrNotExist if there is none yet.
	Checkpoint(ctx context.Context) (transparency.Checkpoint, error)
	// Cosigned returns the last checkpoint with the cosignatures that the venue's policy asks for. It returns fs.ErrNotExist if there
	// is none yet.
	Cosigned(ctx context.Context) (transparency.Checkpoint, error)
	// Tile returns a tile or an entry bundle. It returns fs.ErrNotExist if the published tree has none.
	Tile(ctx context.Context, t tlog.Tile) ([]byte, error)
	// Keys returns the list of the log's keys (transparency.ParseLogKeys). It returns fs.ErrNotExist if nothing is signed yet.
	Keys(ctx context.Context) (string, error)
	// Rotation returns the receipt of the record that names the key of a generation. It returns fs.ErrNotExist if there is none yet.
	Rotation(ctx context.Context, generation int) ([]byte, error)
}

// Config holds the dependencies of the routes.
type Config struct {
	Auth *rest.Auth
	// Log returns the log of a partition and the id of the journal. It returns fs.ErrNotExist for an unknown partition.
	Log func(ctx context.Context, journal string, partition int32) (Log, scalar.ID, error)
	// Public lists the journals of the logs that need no token. The size of another log reveals how busy the brokers are.
	Public []string
}

// Register adds the routes.
func Register(e *echo.Echo, c Config) {
	for _, prefix := range []string{"/tlog/:journal/:partition", "/tlog/:journal/:partition/:id"} {
		e.GET(prefix+"/checkpoint", c.checkpoint)
		e.GET(prefix+"/cosigned-checkpoint", c.cosigned)
		e.GET(prefix+"/key", c.key)
		e.GET(prefix+"/keys", c.keys)
		e.GET(prefix+"/keys/:generation", c.rotation)
		e.GET(prefix+"/tile/:level/:index", c.tile) // the last parameter of a path also takes slashes
	}
}

// log returns the log that a request names, after it has checked the request's token.
func (cfg *Config) log(c echo.Context) (Log, error) {
	if err := cfg.admit(c); err != nil {
		return nil, err
	}
	partition, err := strconv.ParseInt(c.Param("partition"), 10, 32)
	if err != nil || strconv.FormatInt(partition, 10) != c.Param("partition") {
		return nil, notFound(err)
	}
	log, id, err := cfg.Log(c.Request().Context(), c.Param("journal"), int32(partition))
	if err != nil {
		return nil, failed(err)
	}
	if given := c.Param("id"); given != "" && given != id.String() {
		return nil, notFound(nil)
	}
	return log, nil
}

// admit checks the token of a request for a log that is not public. One that is confined to an account belongs to a customer.
func (cfg *Config) admit(c echo.Context) error {
	if cfg.public(c) {
		return nil
	}
	c.Response().Header().Set(echo.HeaderCacheControl, "no-store") // of errors
	p, err := cfg.Auth.Authenticate(c)
	if err == nil && p.Customer != "" {
		err = problem.Forbidden("This log is for brokers: the token is confined to one account.")
	}
	return err
}

func (cfg *Config) public(c echo.Context) bool {
	for _, name := range cfg.Public {
		if name == c.Param("journal") {
			return true
		}
	}
	return false
}

func notFound(err error) error {
	return problem.NotFound("TLOG_NOT_FOUND", "There is no such transparency log, or it has no such tile or key yet.").Because(err)
}

// failed returns the response to an error of a log.
func failed(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return notFound(err)
	}
	return problem.Unavailable("TLOG_UNAVAILABLE", "The transparency log cannot be read now.", time.Second).Because(err)
}

const plain = "text/plain; charset=utf-8"

// checkpoint returns the last checkpoint. A cache may serve it for a second, the time between two.
func (cfg *Config) checkpoint(c echo.Context) error { return cfg.note(c, Log.Checkpoint) }

// cosigned returns the last checkpoint that witnesses have cosigned.
func (cfg *Config) cosigned(c echo.Context) error { return cfg.note(c, Log.Cosigned) }

func (cfg *Config) note(c echo.Context, read func(Log, context.Context) (transparency.Checkpoint, error)) error {
	log, err := cfg.log(c)
	if err != nil {
		return err
	}
	last, err := read(log, c.Request().Context())
	if err != nil {
		return failed(err)
	}
	cfg.cache(c, "max-age=1")
	return c.Blob(http.StatusOK, plain, last.Note)
}

// key returns the newest key that verifies the checkpoints.
func (cfg *Config) key(c echo.Context) error {
	log, err := cfg.log(c)
	if err != nil {
		return err
	}
	last, err := log.Checkpoint(c.Request().Context())
	if err != nil {
		return failed(err)
	}
	cfg.cache(c, "max-age=60")
	return c.Blob(http.StatusOK, plain, []byte(last.Newest()+"\n"))
}

// keys returns the list of the keys that verify the checkpoints, and say when they retire.
func (cfg *Config) keys(c echo.Context) error {
	log, err := cfg.log(c)
	if err != nil {
		return err
	}
	list, err := log.Keys(c.Request().Context())
	if err != nil {
		return failed(err)
	}
	cfg.cache(c, "max-age=60")
	return c.Blob(http.StatusOK, plain, []byte(list))
}

// rotation returns the receipt of the record that names a key.
func (cfg *Config) rotation(c echo.Context) error {
	log, err := cfg.log(c)
	if err != nil {
		return err
	}
	generation, err := strconv.Atoi(c.Param("generation"))
	if err != nil || strconv.Itoa(generation) != c.Param("generation") {
		return notFound(err)
	}
	proof, err := log.Rotation(c.Request().Context(), generation)
	if err != nil {
		return failed(err)
	}
	cfg.cache(c, "max-age=60")
	return c.Blob(http.StatusOK, echo.MIMEApplicationJSON, proof)
}

// tile returns a tile or an entry bundle. Neither ever changes.
func (cfg *Config) tile(c echo.Context) error {
	log, err := cfg.log(c)
	if err != nil {
		return err
	}
	at, err := transparency.ParseTilePath("tile/" + c.Param("level") + "/" + c.Param("index"))
	if err != nil {
		return notFound(err)
	}
	data, err := log.Tile(c.Request().Context(), at)
	if err != nil {
		return failed(err)
	}
	cfg.cache(c, "max-age=31536000, immutable")
	return c.Blob(http.StatusOK, echo.MIMEOctetStream, data)
}

// cache sets how long a response may be cached: by everybody if the log is public, else by the client.
func (cfg *Config) cache(c echo.Context, how string) {
	whose := "private, "
	if cfg.public(c) {
		whose = "public, "
	}
	c.Response().Header().Set(echo.HeaderCacheControl, whose+how)
}
