package main

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/perpetua-exchange/perpetua/domain/owner"
	"github.com/perpetua-exchange/perpetua/domain/webhook"
	"github.com/perpetua-exchange/perpetua/projections"
	"github.com/perpetua-exchange/perpetua/projections/onboarding"
	"github.com/perpetua-exchange/perpetua/projections/postgres"
)

// The lengths of the two lists that are compared, and of their pages.
const (
	longList  = 1_000_000
	shortList = 1_000
	listPage  = 50
)

// listed inserts lists of the given size. Almost all rows are finished or delivered, as in a venue after years of
// onboarding. The database counts the rows in the same manner as those of a projection.
const listed = `INSERT INTO triggers SELECT md5('trigger' || i)::uuid, md5('entitlement')::uuid, md5('owner' || i)::uuid, 'person', 'alpha',
	CASE WHEN i % 500 = 3 THEN 'ongoing' ELSE 'finished' END, NULL, NULL, NULL, NULL, NULL, 'name', 'manual', false, '[]', false, NULL, NULL, '[]',
	now(), now(), i, 1, NULL, NULL, i, 1 FROM generate_series(1, size) i;
INSERT INTO questionnaires SELECT md5('questionnaire' || i)::uuid, 'name', '', 'person', NULL, i % 7 <> 2, now(), i, 2, i FROM generate_series(1, size) i;
INSERT INTO deliveries SELECT md5('delivery' || i)::uuid, md5('webhook' || i % 20)::uuid, 'alpha', md5('notice' || i)::uuid, 'entitlementCompleted',
	md5('owner' || i)::uuid, 'person', false, CASE WHEN i % 500 = 3 THEN 'dead' ELSE 'delivered' END, 1, NULL, now(), i, 3, i FROM generate_series(1, size) i;
INSERT INTO checkpoints VALUES ('onboarding', 0, size, size, sha256(''), now())`

// measureListings compares pages anywhere in long lists to pages of short ones.
func measureListings(ctx context.Context, b *bench) error {
	server, err := postgres.Start(ctx, postgres.Config{Dir: filepath.Join(b.dir, "listings-postgres"), Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	defer server.Close()
	long, removeLong, err := lists(ctx, server.AdminURL(), "long", longList)
	if err != nil {
		return err
	}
	defer removeLong()
	short, removeShort, err := lists(ctx, server.AdminURL(), "short", shortList)
	if err != nil {
		return err
	}
	defer removeShort()
	for _, l := range listings() {
		if err := b.pair(Row{Measure: fmt.Sprintf("a page of %s at %d rows, p99", l.what, longList), Unit: "ms", Against: fmt.Sprintf("at %d rows", shortList), Aim: atMost(1.5)},
			b.tail(ctx, long, longList, l.page), b.tail(ctx, short, shortList, l.page)); err != nil {
			return err
		}
	}
	return nil
}

// lists returns a database with lists of a given size.
func lists(ctx context.Context, url, schema string, size int) (pool *pgxpool.Pool, remove func(), err error) {
	pool, remove, err = projections.OpenBeside(ctx, url, schema)
	if err != nil {
		return nil, nil, err
	}
	if _, err = pool.Exec(ctx, strings.ReplaceAll(listed, "size", strconv.Itoa(size))); err == nil {
		for _, table := range onboarding.Projection.Tables() {
			if _, err = pool.Exec(ctx, "VACUUM ANALYZE "+table); err != nil {
				break
			}
		}
	}
	if err == nil { // writes the new rows to disk, as in a venue that has run for a while
		_, err = pool.Exec(ctx, "CHECKPOINT")
	}
	if err != nil {
		remove()
		return nil, nil, err
	}
	return pool, remove, nil
}

// listing reads a page of a list at an offset, and returns the length of the list.
type listing struct {
	what string
	page func(ctx context.Context, db projections.DB, offset int) (rows, total int, err error)
}

func listings() []listing {
	return []listing{
		{"triggers", func(ctx context.Context, db projections.DB, offset int) (int, int, error) {
			rows, total, _, err := onboarding.Triggers(ctx, db, onboarding.TriggerFilter{}, listPage, offset)
			return len(rows), total, err
		}},
		{"questionnaires", func(ctx context.Context, db projections.DB, offset int) (int, int, error) {
			rows, total, _, err := onboarding.Questionnaires(ctx, db, onboarding.QuestionnaireFilter{Type: owner.PersonType}, listPage, offset)
			return len(rows), total, err
		}},
		{"deliveries", func(ctx context.Context, db projections.DB, offset int) (int, int, error) {
			rows, total, _, err := onboarding.Deliveries(ctx, db, onboarding.DeliveryFilter{}, listPage, offset)
			return len(rows), total, err
		}},
		{"delivered deliveries", func(ctx context.Context, db projections.DB, offset int) (int, int, error) {
			rows, total, _, err := onboarding.Deliveries(ctx, db, onboarding.DeliveryFilter{Statuses: []webhook.Status{webhook.Delivered}}, listPage, offset)
			return len(rows), total, err
		}},
	}
}

// tail returns a function that measures the 99th percentile of the time for a page, in milliseconds. Every second page
// is the first of its list, the others are at random offsets.
func (b *bench) tail(ctx context.Context, pool *pgxpool.Pool, size int, page func(context.Context, projections.DB, int) (int, int, error)) func() (float64, error) {
	random := rand.New(rand.NewPCG(11, 12))
	return func() (float64, error) {
		var took []float64
		for start := time.Now(); len(took) == 0 || time.Since(start) < b.round; {
			offset := 0
			if len(took)%2 == 1 {
				offset = random.IntN(size / 2)
			}
			sent := time.Now()
			rows, total, err := page(ctx, pool, offset)
			if err != nil {
				return 0, err
			}
			took = append(took, milliseconds(time.Since(sent)))
			if total < size/2 || rows != min(listPage, total-offset) {
				return 0, fmt.Errorf("a page of %d rows after %d of %d", rows, offset, total)
			}
		}
		slices.Sort(took)
		return took[len(took)*99/100], nil
	}
}
