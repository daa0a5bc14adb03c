//go:build cloud

package blob

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
	"time"

	"cloud.google.com/go/storage"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/bloberror"
	"github.com/aws/aws-sdk-go-v2/feature/s3/transfermanager"
	"google.golang.org/api/googleapi"
)

// TestLocksInRequests puts both modes into the requests of both stores.
func TestLocksInRequests(t *testing.T) {
	until := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	for mode, want := range map[Mode][2]string{Governance: {"GOVERNANCE", "Unlocked"}, Compliance: {"COMPLIANCE", "Locked"}} {
		upload, writer := new(transfermanager.UploadObjectInput), new(storage.Writer)
		inS3 := func(i any) bool {
			p, ok := i.(**transfermanager.UploadObjectInput)
			if ok {
				*p = upload
			}
			return ok
		}
		inGoogle := func(i any) bool {
			p, ok := i.(**storage.Writer)
			if ok {
				*p = writer
			}
			return ok
		}
		if err := errors.Join(applyLock(inS3, Lock{until, mode}), applyLock(inGoogle, Lock{until, mode})); err != nil {
			t.Fatal(err)
		}
		if string(upload.ObjectLockMode) != want[0] || !upload.ObjectLockRetainUntilDate.Equal(until) || upload.ChecksumAlgorithm == "" {
			t.Errorf("%s in S3: %+v", mode, upload)
		}
		if r := writer.Retention; r == nil || r.Mode != want[1] || !r.RetainUntil.Equal(until) {
			t.Errorf("%s in Google's store: %+v", mode, r)
		}
	}
	if err := applyLock(none, Lock{until, Governance}); !errors.Is(err, ErrNoLocks) {
		t.Errorf("another store: %v", err)
	}
}

// TestLocksInGoogle takes the later of the retention of an object and of the policy of its bucket.
func TestLocksInGoogle(t *testing.T) {
	early, late := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(2031, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		about storage.ObjectAttrs
		want  Lock
	}{
		{storage.ObjectAttrs{}, Lock{}},
		{storage.ObjectAttrs{RetentionExpirationTime: early}, Lock{Until: early}},
		{storage.ObjectAttrs{Retention: &storage.ObjectRetention{Mode: "Locked", RetainUntil: early}}, Lock{early, Compliance}},
		{storage.ObjectAttrs{RetentionExpirationTime: early, Retention: &storage.ObjectRetention{Mode: "Unlocked", RetainUntil: late}}, Lock{late, Governance}},
		{storage.ObjectAttrs{RetentionExpirationTime: late, Retention: &storage.ObjectRetention{Mode: "Locked", RetainUntil: early}}, Lock{Until: late}},
	} {
		if got := lockInGoogle(&c.about); got != c.want {
			t.Errorf("%+v: %v", c.about, got)
		}
	}
}

// TestRefusalsOfStores: the driver of Google's store reports a refusal as a missing blob, and that of Azure as an unknown error.
func TestRefusalsOfStores(t *testing.T) {
	for _, c := range []struct {
		err  error
		want bool
	}{
		{&googleapi.Error{Code: http.StatusForbidden}, true},
		{&googleapi.Error{Code: http.StatusNotFound}, false},
		{&azcore.ResponseError{ErrorCode: string(bloberror.BlobImmutableDueToPolicy), StatusCode: http.StatusConflict}, true},
		{&azcore.ResponseError{ErrorCode: string(bloberror.BlobNotFound), StatusCode: http.StatusNotFound}, false},
	} {
		if got := Refused(fmt.Errorf("blob store: %w", c.err)); got != c.want {
			t.Errorf("%v is refused: %t", c.err, got)
		}
	}
}

// TestLocksOfABucketInS3 tells a bucket without Object Lock from one that does not let this user ask.
func TestLocksOfABucketInS3(t *testing.T) {
	t.Setenv("AWS_ACCESS_KEY_ID", "id")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
	refusal := func(code string) string { return "<Error><Code>" + code + "</Code></Error>" }
	for _, c := range []struct {
		status  int
		answer  string
		can, no bool
	}{
		{http.StatusOK, "<ObjectLockConfiguration><ObjectLockEnabled>Enabled</ObjectLockEnabled></ObjectLockConfiguration>", true, false},
		{http.StatusNotFound, refusal("ObjectLockConfigurationNotFoundError"), false, true},
		{http.StatusOK, "<ObjectLockConfiguration></ObjectLockConfiguration>", false, true},
		{http.StatusForbidden, refusal("AccessDenied"), false, false},
		{http.StatusNotImplemented, refusal("NotImplemented"), false, false},
	} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/records" || !r.URL.Query().Has("object-lock") {
				t.Errorf("asked for %v", r.URL)
			}
			w.WriteHeader(c.status)
			fmt.Fprint(w, c.answer)
		}))
		defer s.Close()
		at := "s3://records?region=eu-central-1&use_path_style=true&prefix=a/&endpoint=" + url.QueryEscape(s.URL)
		bucket, err := Open(t.Context(), at)
		if err != nil {
			t.Fatal(err)
		}
		defer bucket.Close()
		if err := CheckLocks(t.Context(), bucket, at); (err == nil) != c.can || errors.Is(err, ErrNoLocks) != c.no {
			t.Errorf("%d %s: %v", c.status, c.answer, err)
		}
	}
}
