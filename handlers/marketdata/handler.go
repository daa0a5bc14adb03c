// Package marketdata serves the daily files of public market data, and the list of them. Everybody may read them, without a token.
package marketdata

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/domain/validation"
	"github.com/perpetua-exchange/perpetua/handlers/web/capacity"
	"github.com/perpetua-exchange/perpetua/handlers/web/input"
	"github.com/perpetua-exchange/perpetua/handlers/web/problem"
	"github.com/perpetua-exchange/perpetua/handlers/web/rest"
	"github.com/perpetua-exchange/perpetua/projections/dataset"
	"github.com/perpetua-exchange/perpetua/projections/marketdata"
)

// Config holds the dependencies of the routes.
type Config struct {
	// Store returns the store of the files, or nil if the venue has no log yet.
	Store func(ctx context.Context) (*marketdata.Store, error)
	// Made is false if the venue makes no more files. Earlier ones are served.
	Made bool
	// LogTime returns the time of the last record that this node has read, or 0 if there is none.
	LogTime func() scalar.Time
	// TimeOf returns the time of a record, or false if this node does not know it.
	TimeOf func(ctx context.Context, sequence int64) (at scalar.Time, known bool, err error)

	downloads *capacity.Limiter // of files that are open, by the client's network
}

// maxDownloads and maxDownloadsOfNetwork limit the files that are open at the same time. A client may read slowly, and its download
// takes a file of the process besides its connection.
const maxDownloads, maxDownloadsOfNetwork = 128, 64

// capacityWithin is how long a download waits for capacity.
const capacityWithin = 2 * time.Second

// Register adds the routes.
func Register(e *echo.Echo, c Config) {
	c.downloads = capacity.New(maxDownloads, maxDownloadsOfNetwork, capacityWithin,
		capacity.Busy{Code: "DOWNLOADS_BUSY", Message: "Too many files are being downloaded."})
	e.GET("/data/", c.list)
	e.GET("/data/:table/:file", c.file)
}

const (
	suffix = ".parquet"
	// cacheAge is how long caches may keep the list, and a file, which another build may make again with other bytes.
	cacheAge = 10 * time.Second
	// retryAfter is the wait before a client asks again for files that are being made.
	retryAfter = 10 * time.Second
)

// entry is a file in the list. The members that a day has only when it is over are null before.
type entry struct {
	Table  string  `json:"table"`
	Date   string  `json:"date"`
	Path   string  `json:"path"`
	Final  bool    `json:"final"`
	Bytes  *int64  `json:"bytes"`
	SHA256 *string `json:"sha256"`
	Rows   *int64  `json:"rows"`
	First  *int64  `json:"first_sequence"`
	Last   *int64  `json:"last_sequence"`
}

func newEntry(m *marketdata.Manifest, f *marketdata.File) entry {
	sum, last := f.SHA256.String(), m.Next-1
	return entry{Table: f.Table, Date: m.Date, Path: pathOf(f.Table, m.Date), Final: true, Bytes: &f.Bytes, SHA256: &sum, Rows: &f.Rows, First: &m.First, Last: &last}
}

func pathOf(table, date string) string { return "/data/" + table + "/" + date + suffix }

// filter selects files.
type filter struct {
	tables   []string
	from, to string // dates, inclusive; "" for no bound
}

func readFilter(f *input.Form) filter {
	return filter{input.Several(f, "table", dataset.PublicTables()...), readDate(f, "from"), readDate(f, "to")}
}

func readDate(f *input.Form, name string) string {
	text := f.OptionalString(name)
	if !text.Set {
		return ""
	}
	if _, err := marketdata.ParseDate(text.Value); err != nil {
		f.Fault(name, validation.InvalidValue, "this is not a date like 2026-11-26")
	}
	return text.Value
}

func (f *filter) takes(table, date string) bool {
	return (f.tables == nil || slices.Contains(f.tables, table)) && date >= f.from && (f.to == "" || date <= f.to)
}

// list lists the files by date, the last ones first, and before them those of the day that is not over.
func (cfg *Config) list(c echo.Context) error {
	query := rest.Query(c)
	f := readFilter(query)
	if err := query.Done(); err != nil {
		return err
	}
	_, days, err := cfg.days(c)
	if err != nil {
		return err
	}
	all := []entry{}
	if today := cfg.today(); today != "" && cfg.Made {
		for _, table := range dataset.PublicTables() {
			if f.takes(table, today) {
				all = append(all, entry{Table: table, Date: today, Path: pathOf(table, today)})
			}
		}
	}
	for _, m := range slices.Backward(days) {
		for i := range m.Files {
			if f.takes(m.Files[i].Table, m.Date) {
				all = append(all, newEntry(&m, &m.Files[i]))
			}
		}
	}
	return rest.CachedJSON(c, cacheAge, map[string][]entry{"files": all})
}

// days returns the store and the published days. Without a log there are none.
func (cfg *Config) days(c echo.Context) (*marketdata.Store, []marketdata.Manifest, error) {
	ctx := c.Request().Context()
	s, err := cfg.Store(ctx)
	if err != nil {
		return nil, nil, unavailable(err)
	}
	if s == nil {
		return nil, nil, nil
	}
	days, err := s.Recent(ctx)
	if err != nil {
		return nil, nil, unavailable(err)
	}
	return s, days, nil
}

func unavailable(err error) error {
	return problem.Unavailable("DATA_UNAVAILABLE", "The daily files cannot be read now.", retryAfter).Because(err)
}

// today returns the day of the last record, or "".
func (cfg *Config) today() string {
	at := cfg.LogTime()
	if at == 0 {
		return ""
	}
	return dataset.DateOf(at)
}

// file returns a file.
func (cfg *Config) file(c echo.Context) error {
	if err := rest.NoQuery(c); err != nil {
		return err
	}
	table := rest.Param(c, "table")
	if !slices.Contains(dataset.PublicTables(), table) {
		return problem.NotFound("DATA_NOT_FOUND", "There is no such table: the tables are "+strings.Join(dataset.PublicTables(), ", ")+".")
	}
	date, named := strings.CutSuffix(rest.Param(c, "file"), suffix)
	begins, err := marketdata.ParseDate(date)
	if !named || err != nil {
		return problem.Invalid(validation.FieldError{In: validation.InPath, Path: validation.At("file"), Code: validation.InvalidValue,
			Message: "the name of a file is a date and .parquet, like 2026-11-26.parquet"})
	}
	s, days, err := cfg.days(c)
	if err != nil {
		return err
	}
	at, found := slices.BinarySearchFunc(days, date, func(m marketdata.Manifest, date string) int { return strings.Compare(m.Date, date) })
	if !found {
		return cfg.missing(c.Request().Context(), days, at, date, begins)
	}
	f := days[at].File(table)
	if f == nil { // an earlier build has made the day without this table
		return problem.NotFound("DATA_NOT_FOUND", "The files of "+date+" do not have this table.")
	}
	return cfg.send(c, s, date, f)
}

// missing returns the problem for a day without files. at is the index of the first day after it.
func (cfg *Config) missing(ctx context.Context, days []marketdata.Manifest, at int, date string, begins scalar.Time) error {
	today := cfg.today()
	switch {
	case !cfg.Made:
		return problem.NotFound("DATA_NOT_FOUND", "This venue makes no daily files now. GET /data/ lists those that it has.")
	case today == "" || date >= today:
		ends := begins + scalar.Day
		return problem.NotFound("DATA_DAY_NOT_OVER", fmt.Sprintf("The day %s is not over in the venue's log. It ends at %v, and its files are made when the log has a later record.", date, ends))
	case len(days) > 0 && date < days[0].Date:
		return problem.NotFound("DATA_NOT_FOUND", "The first day with files is "+days[0].Date+".")
	}
	none, err := cfg.noRecords(ctx, days, at, date)
	switch {
	case err != nil:
		return unavailable(err)
	case none:
		return problem.NotFound("DATA_NOT_FOUND", "The venue's log has no records of "+date+". GET /data/ lists the files.")
	}
	return problem.NotFound("DATA_NOT_MADE", "The day "+date+" is over, and its files are not made yet.").RetryAfter(retryAfter)
}

// noRecords reports whether the log goes from a day before date to one after it. at is the index of the first published day after it.
func (cfg *Config) noRecords(ctx context.Context, days []marketdata.Manifest, at int, date string) (bool, error) {
	next := int64(0) // the first record after the last published day before date
	if at > 0 {
		next = days[at-1].Next
	}
	if at < len(days) && days[at].First == next {
		return true, nil
	}
	recorded, known, err := cfg.TimeOf(ctx, next)
	return known && dataset.DateOf(recorded) > date, err
}
